package runs

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/schema"
)

// ActorVariable names who uses the commands, where the user of the system does not.
const ActorVariable = "ROPEWALK_ACTOR"

// certificateVariable is Temporal's own, for the client's certificate.
const certificateVariable = "TEMPORAL_TLS_CLIENT_CERT_PATH"

// longestDetail bounds what a deed says.
const longestDetail = 2000 // bytes

// Actor says who asks: whom ActorVariable names, else the subject of the certificate that Temporal is shown, else the
// system's user.
func Actor() string {
	if name := os.Getenv(ActorVariable); name != "" {
		return name
	}
	if name := subject(os.Getenv(certificateVariable)); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return fmt.Sprintf("user %d", os.Getuid())
}

// subject is the common name of the certificate in a file, "" if there is none.
func subject(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return ""
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return ""
	}
	return c.Subject.CommonName
}

// Note notes in the record who asks for an action on a run, or with schema.NoRun on no single run, before it is done.
// What cannot be noted is not done.
func (s *Session) Note(ctx context.Context, run, action string, with ...any) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	detail := ""
	if len(with) > 0 {
		text, err := json.Marshal(with[0])
		if err != nil {
			return noteFailed(run, action, err)
		}
		detail = strings.ToValidUTF8(string(text[:min(len(text), longestDetail)]), "")
	}
	d := schema.NewDeed(action, detail, Actor(), host, time.Now())
	text, err := schema.Canonical(d)
	if err == nil {
		err = s.Store.PutIfAbsent(ctx, schema.DeedKey(run, d, strings.ToLower(rand.Text()[:8])), text)
	}
	if err != nil {
		return noteFailed(run, action, err)
	}
	return nil
}

func noteFailed(run, action string, err error) error {
	if run == schema.NoRun {
		return fmt.Errorf("note who asks for %s: %w", action, err)
	}
	return fmt.Errorf("note who asks for %s of run %s: %w", action, run, err)
}
