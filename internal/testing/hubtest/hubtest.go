// Package hubtest is a hub for tests, on a local server.
package hubtest

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Server is a hub with repositories in memory.
type Server struct {
	*httptest.Server
	// Requests counts all requests, Files those for files.
	Requests, Files atomic.Int64
	repositories    map[string]Repository
}

// Repository is what the server has of one repository.
type Repository struct {
	Files map[string][]byte
	Token string // the token that a gated repository asks for; "" = it is public
	// Cut ends the first answer for each large file in the middle.
	Cut bool
	// Broken sends other bytes than the digests say.
	Broken bool
}

// Commit is the commit of every repository's main branch.
const Commit = "0123456789abcdef0123456789abcdef01234567"

// New starts a hub and makes it that of the test's process. The token and the files of a login are left out.
func New(t testing.TB, repositories map[string]Repository) *Server {
	t.Helper()
	s := &Server{repositories: repositories}
	var cut atomic.Bool
	lists, files := http.NewServeMux(), http.NewServeMux()
	const list = "GET /api/models/{owner}/{name}/revision/{revision}"
	lists.HandleFunc(list, func(w http.ResponseWriter, r *http.Request) {
		s.Requests.Add(1)
		repository, commit, ok := s.find(w, r)
		if !ok {
			return
		}
		var siblings []map[string]any
		for name, data := range repository.Files {
			blob := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(data), data))
			one := map[string]any{"rfilename": name, "size": len(data), "blobId": hex.EncodeToString(blob[:])}
			if strings.HasSuffix(name, ".safetensors") || strings.HasSuffix(name, ".gguf") {
				sum := sha256.Sum256(data)
				one["lfs"] = map[string]any{"sha256": hex.EncodeToString(sum[:]), "size": len(data)}
			}
			siblings = append(siblings, one)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"sha": commit, "siblings": siblings})
	})
	files.HandleFunc("GET /{owner}/{name}/resolve/{revision}/{file...}", func(w http.ResponseWriter, r *http.Request) {
		s.Requests.Add(1)
		repository, _, ok := s.find(w, r)
		if !ok {
			return
		}
		data, ok := repository.Files[r.PathValue("file")]
		if !ok {
			refuse(w, http.StatusNotFound, "EntryNotFound", "Entry not found")
			return
		}
		s.Files.Add(1)
		if repository.Broken {
			data = append([]byte{data[0] + 1}, data[1:]...)
		}
		if repository.Cut && len(data) > 1000 && r.Header.Get("Range") == "" && cut.CompareAndSwap(false, true) {
			w.Header().Set("Content-Length", fmt.Sprint(len(data)))
			_, _ = w.Write(data[:700])
			return
		}
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(data)))
	})
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") {
			lists.ServeHTTP(w, r)
			return
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	t.Setenv("HF_ENDPOINT", s.URL)
	t.Setenv("HF_TOKEN", "")
	t.Setenv("HF_TOKEN_PATH", t.TempDir()+"/none")
	return s
}

// find returns the repository and commit of a request, or answers why there is none.
func (s *Server) find(w http.ResponseWriter, r *http.Request) (Repository, string, bool) {
	repository, ok := s.repositories[r.PathValue("owner")+"/"+r.PathValue("name")]
	if !ok {
		refuse(w, http.StatusUnauthorized, "RepoNotFound", "Repository not found")
		return repository, "", false
	}
	if repository.Token != "" && r.Header.Get("Authorization") != "Bearer "+repository.Token {
		refuse(w, http.StatusForbidden, "GatedRepo", "Access to model "+r.PathValue("name")+
			" is restricted. You must have access to it and be authenticated to access it.")
		return repository, "", false
	}
	if revision := r.PathValue("revision"); revision == "main" || revision == Commit {
		return repository, Commit, true
	}
	refuse(w, http.StatusNotFound, "RevisionNotFound", "Invalid rev id: "+r.PathValue("revision"))
	return repository, "", false
}

func refuse(w http.ResponseWriter, status int, code, reason string) {
	w.Header().Set("X-Error-Code", code)
	w.Header().Set("X-Error-Message", reason)
	w.WriteHeader(status)
}
