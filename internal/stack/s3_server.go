package stack

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// s3Server runs versitygw over a plain folder.
type s3Server struct {
	*supervisor
	keys credentials
	port port
}

// healthPath answers without credentials. No bucket can have the name of a dash.
const healthPath = "/-/healthy"

func (s *s3Server) command() (*exec.Cmd, error) {
	bin, err := FindTool("versitygw")
	if err != nil {
		return nil, err
	}
	// A bucket is a folder. No other process serves this tree.
	if err := os.MkdirAll(filepath.Join(s.files.s3(), s.Addresses.S3Bucket), 0o700); err != nil {
		return nil, fmt.Errorf("make bucket folder: %w", err)
	}
	if err := s.port.choose(s.say); err != nil {
		return nil, err
	}
	args := []string{"--port", s.port.address(), "--region", s.Addresses.Region, "--health", healthPath, "--quiet",
		"posix"}
	sidecar, err := s.sidecar()
	if err != nil {
		return nil, err
	}
	args = append(append(args, sidecar...), s.files.s3())
	cmd := exec.Command(bin, args...)
	cmd.Env = append(plainEnv(), "ROOT_ACCESS_KEY="+s.keys.AccessKey, "ROOT_SECRET_KEY="+s.keys.SecretKey)
	return cmd, nil
}

// sidecar returns the arguments that put object metadata into a separate folder, for file systems without extended
// attributes. A root that started with such a folder keeps using it.
func (s *s3Server) sidecar() ([]string, error) {
	dir := s.files.s3Sidecar()
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && hasXattrs(s.files.s3()) {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make folder for object metadata: %w", err)
	}
	return []string{"--sidecar", dir}, nil
}

// hasXattrs tries to set an attribute on the folder itself.
func hasXattrs(dir string) bool {
	const name = "user.ropewalk.probe"
	if err := unix.Setxattr(dir, name, make([]byte, 1024), 0); err != nil {
		return false
	}
	return unix.Removexattr(dir, name) == nil
}

func (s *s3Server) probe(ctx context.Context, p *process) error {
	if err := s.port.listening(p); err != nil {
		return err
	}
	if err := httpAnswer(ctx, s.url()+healthPath); err != nil {
		return fmt.Errorf("get %s%s: %w", s.url(), healthPath, err)
	}
	return nil
}

func (s *s3Server) url() string { return "http://" + s.port.address() }

// credentials are the keys of the local S3 server. They are made once per root folder.
type credentials struct {
	AccessKey string `json:"access_key"`
	SecretKey string `json:"secret_key"`
}

func (l layout) loadCredentials() (credentials, error) {
	var c credentials
	text, err := os.ReadFile(l.credentials())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c = credentials{AccessKey: "ROPEWALK" + rand.Text()[:12], SecretKey: rand.Text() + rand.Text()}
		text, err = json.Marshal(c)
		if err != nil {
			return c, fmt.Errorf("encode S3 credentials: %w", err)
		}
		return c, writeFile(l.credentials(), append(text, '\n'))
	case err != nil:
		return c, fmt.Errorf("read S3 credentials: %w", err)
	}
	if err := json.Unmarshal(text, &c); err != nil || c.AccessKey == "" || c.SecretKey == "" {
		return c, fmt.Errorf("read S3 credentials: %s is damaged: remove it and new ones are made", l.credentials())
	}
	return c, nil
}
