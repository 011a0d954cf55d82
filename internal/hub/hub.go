package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// ErrUnreachable says that no hub answered. A model that was fetched before can then be used from the store.
var ErrUnreachable = errors.New("the hub cannot be reached")

// The limits of a request.
const (
	answerWithin = 30 * time.Second
	mostListing  = 64 << 20 // bytes of a list of files
	mostReason   = 2 << 10  // bytes of an answer that says why there is no file
	mostFiles    = 10_000
)

// standard is the address of the hub where HF_ENDPOINT names no other.
const standard = "https://huggingface.co"

// Hub is one server. The zero value is not usable; Here makes one.
type Hub struct {
	endpoint string
	token    string // never part of an error
	offline  bool
	client   *http.Client
}

// Here is the hub that the process's environment names. token replaces the environment's token unless it is "".
func Here(token string) Hub {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = answerWithin
	return Hub{endpoint: cmp.Or(strings.TrimRight(os.Getenv("HF_ENDPOINT"), "/"), standard),
		token: cmp.Or(token, givenToken()), offline: os.Getenv("HF_HUB_OFFLINE") == "1",
		client: &http.Client{Transport: transport}}
}

// givenToken is the token of the environment: HF_TOKEN, or the file that a login left.
func givenToken() string {
	if token := strings.TrimSpace(os.Getenv("HF_TOKEN")); token != "" {
		return token
	}
	name := os.Getenv("HF_TOKEN_PATH")
	if home := os.Getenv("HF_HOME"); name == "" && home != "" {
		name = filepath.Join(home, "token")
	}
	if home, err := os.UserHomeDir(); name == "" && err == nil {
		name = filepath.Join(home, ".cache", "huggingface", "token")
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return "" // public repositories need none
	}
	return strings.TrimSpace(string(text))
}

// Snapshot is a commit of a repository.
type Snapshot struct {
	Repository string // of a data set with datasets/ before it
	Commit     string
	Files      []File
}

// File is one file of a snapshot.
type File struct {
	Name   string // with folders
	Size   int64  // −1 if the hub does not say
	SHA256 string // of its bytes; "" of small files, which the hub keeps in git
	Blob   string // git's digest; "" if the hub does not say
}

// IsCommit reports whether a revision names a commit and not a branch or tag.
func IsCommit(revision string) bool { return commitForm.MatchString(revision) }

var (
	commitForm     = regexp.MustCompile(`^[0-9a-f]{40}$`)
	repositoryForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}$`)
)

// Parse reads OWNER/NAME or OWNER/NAME@REVISION; the revision is main if there is none.
func Parse(text string) (repository, revision string, err error) {
	repository, revision, named := strings.Cut(text, "@")
	if !named {
		revision = "main"
	}
	if !repositoryForm.MatchString(repository) || strings.Contains(repository, "..") {
		return "", "", fmt.Errorf("%q is not OWNER/NAME", repository)
	}
	if revision == "" || strings.ContainsAny(revision, " ?#\\") || strings.Contains(revision, "..") {
		return "", "", fmt.Errorf("%q is no revision", revision)
	}
	return repository, revision, nil
}

// Resolve returns the commit that a revision names, and its files. The repository of a data set begins with datasets/.
func (h Hub) Resolve(ctx context.Context, repository, revision string) (Snapshot, error) {
	kind := "models/"
	if strings.HasPrefix(repository, "datasets/") {
		kind = ""
	}
	answer, err := h.get(ctx, fmt.Sprintf("%s/api/%s%s/revision/%s?blobs=true", h.endpoint, kind, repository,
		url.PathEscape(revision)), 0)
	if err != nil {
		return Snapshot{}, fmt.Errorf("hf://%s@%s: %w", repository, revision, err)
	}
	defer answer.Body.Close()
	var listing struct {
		SHA      string
		Siblings []struct {
			Name string `json:"rfilename"`
			Size *int64 `json:"size"`
			Blob string `json:"blobId"`
			LFS  *struct {
				SHA256 string `json:"sha256"`
				Size   int64  `json:"size"`
			} `json:"lfs"`
		}
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, mostListing)).Decode(&listing); err != nil {
		return Snapshot{}, fmt.Errorf("hf://%s@%s: read the hub's list of files: %w", repository, revision, err)
	}
	if !IsCommit(listing.SHA) || len(listing.Siblings) > mostFiles {
		return Snapshot{}, fmt.Errorf("hf://%s@%s: the hub names the commit %.60q with %d files", repository, revision,
			listing.SHA, len(listing.Siblings))
	}
	out := Snapshot{Repository: repository, Commit: listing.SHA}
	for _, s := range listing.Siblings {
		f := File{Name: s.Name, Size: -1, Blob: s.Blob}
		if s.Size != nil {
			f.Size = *s.Size
		}
		if s.LFS != nil {
			f.SHA256, f.Size = s.LFS.SHA256, s.LFS.Size
		}
		out.Files = append(out.Files, f)
	}
	return out, nil
}

// Open reads a file of a snapshot from an offset on. The caller closes it.
func (h Hub) Open(ctx context.Context, s Snapshot, f File, offset int64) (io.ReadCloser, error) {
	parts := strings.Split(f.Name, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	answer, err := h.get(ctx, fmt.Sprintf("%s/%s/resolve/%s/%s", h.endpoint, s.Repository, s.Commit,
		strings.Join(parts, "/")), offset)
	if err != nil {
		return nil, fmt.Errorf("hf://%s@%s: %s: %w", s.Repository, s.Commit, f.Name, err)
	}
	return answer.Body, nil
}

// get sends a request. The answer is one of success.
func (h Hub) get(ctx context.Context, address string, offset int64) (*http.Response, error) {
	if h.offline {
		return nil, fmt.Errorf("%w: HF_HUB_OFFLINE is set", ErrUnreachable)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("HF_ENDPOINT %q is no address: %w", h.endpoint, err)
	}
	if h.token != "" {
		request.Header.Set("Authorization", "Bearer "+h.token) // the client drops it when another host takes over
	}
	if offset > 0 {
		request.Header.Set("Range", "bytes="+strconv.FormatInt(offset, 10)+"-")
	}
	answer, err := h.client.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	wanted := http.StatusOK
	if offset > 0 {
		wanted = http.StatusPartialContent
	}
	if answer.StatusCode == wanted {
		return answer, nil
	}
	err = h.refused(answer)
	return nil, errors.Join(err, answer.Body.Close())
}

// refused says why the hub gave no file, in the hub's words, and what to do about it.
func (h Hub) refused(answer *http.Response) error {
	reason := answer.Header.Get("X-Error-Message")
	if reason == "" {
		body, err := io.ReadAll(io.LimitReader(answer.Body, mostReason))
		var said struct{ Error string }
		if err == nil && json.Unmarshal(body, &said) == nil {
			reason = said.Error
		}
	}
	text := "the hub answers " + answer.Status
	if code := answer.Header.Get("X-Error-Code"); code != "" {
		text += " (" + code + ")"
	}
	if reason != "" {
		text += ": " + strings.TrimSuffix(strings.TrimSpace(reason), ".")
	}
	if h.token != "" {
		text = strings.ReplaceAll(text, h.token, "[secret]")
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		if h.token == "" {
			text += "; the worker has no token (HF_TOKEN, or policy.token in the recipe)"
		} else {
			text += "; the worker's token may not read it"
		}
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return fmt.Errorf("%w: %s", ErrUnreachable, text)
	}
	return errors.New(text)
}
