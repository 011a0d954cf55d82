package stack

import (
	"fmt"
	"regexp"
)

// newProgram prepares the program of the supervisor's server.
func (s *supervisor) newProgram() (err error) {
	switch s.Server {
	case temporalName:
		s.program, err = s.newTemporal()
	case s3Name:
		s.program, err = s.newS3()
	case workerName:
		s.program = s.newWorker()
	default:
		err = fmt.Errorf("the stack has no server %q", s.Server)
	}
	return err
}

func (s *supervisor) newTemporal() (program, error) {
	guard, err := openGuard(s.port("Temporal's web UI", s.inherited.UI, s.Options.Ports.UI), s.say)
	if err != nil {
		return program{}, err
	}
	t := &temporalServer{supervisor: s, guard: guard,
		front: s.port("Temporal", s.inherited.Temporal, s.Options.Ports.Temporal)}
	return program{command: t.command, probe: t.probe, diagnose: t.diagnose, signOfStall: signOfStall,
		healthy: func() (Addresses, string) {
			if !t.front.settled && sharedHost() {
				s.say(openServerNote)
			}
			t.front.settled = true
			a := Addresses{Temporal: t.front.address(), Namespace: s.Addresses.Namespace, UI: guard.url(),
				Logs: s.files.logs()}
			return a, fmt.Sprintf("Temporal is ready at %s, web UI %s", a.Temporal, a.UI)
		}}, nil
}

// bucketPattern is S3's rule for names, without rare cases. It also keeps the bucket's folder inside the S3 folder.
var bucketPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$`)

func (s *supervisor) newS3() (program, error) {
	bucket := s.Addresses.S3Bucket
	if !bucketPattern.MatchString(bucket) {
		return program{}, fmt.Errorf("use bucket %q: a name is 3 to 63 lower-case letters, digits and dashes; see "+
			"ROPEWALK_S3_BUCKET", bucket)
	}
	keys, err := s.files.loadCredentials()
	if err != nil {
		return program{}, err
	}
	v := &s3Server{supervisor: s, keys: keys, port: s.port("S3", s.inherited.S3Endpoint, s.Options.Ports.S3)}
	return program{command: v.command, probe: v.probe, healthy: func() (Addresses, string) {
		v.port.settled = true
		return Addresses{S3Endpoint: v.url(), S3Bucket: bucket, Region: s.Addresses.Region, S3Folder: s.files.s3(),
			Logs: s.files.logs()}, "S3 is ready at " + v.url()
	}}, nil
}

func (s *supervisor) newWorker() program {
	return program{command: s.workerCommand, probe: s.probeWorker,
		healthy: func() (Addresses, string) { return s.Addresses, "the worker is ready" }}
}
