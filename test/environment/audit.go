package environment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Request is one request in the audit log, as far as tests read it.
type Request struct {
	Stage      string `json:"stage"`
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ImpersonatedUser *struct {
		Username string `json:"username"`
	} `json:"impersonatedUser"`
	ObjectRef *struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"responseStatus"`
	StageTimestamp time.Time `json:"stageTimestamp"`
}

func (r Request) String() string {
	as := ""
	if r.ImpersonatedUser != nil {
		as = " as " + r.ImpersonatedUser.Username
	}
	return fmt.Sprintf("%s %s%s", r.Verb, r.RequestURI, as)
}

// IsRead tells requests that could not change anything.
func (r Request) IsRead() bool {
	return slices.Contains([]string{"get", "list", "watch"}, r.Verb)
}

// IsWrite tells requests that may change something. Dry runs and questions
// about rights do not.
func (r Request) IsWrite() bool {
	isQuestion := strings.HasPrefix(r.RequestURI, "/apis/authorization.k8s.io/")
	return !r.IsRead() && !r.IsDryRun() && !isQuestion
}

// Kind is what requests that are about the same have in common, such as "create configmaps
// as the ServiceAccount in a dry run".
func (r Request) Kind() string {
	about := r.RequestURI
	if r.ObjectRef != nil {
		about = r.ObjectRef.Resource
		if r.ObjectRef.Subresource != "" {
			about += "/" + r.ObjectRef.Subresource
		}
	}
	if r.ImpersonatedUser != nil {
		about += " as the ServiceAccount"
	}
	if r.IsDryRun() {
		about += " in a dry run"
	}
	return r.Verb + " " + about
}

// IsDryRun tells writes that the API server checks and does not store.
func (r Request) IsDryRun() bool { return strings.Contains(r.RequestURI, "dryRun=All") }

// IsEndOfWatch knows the second of the two lines that a watch has.
func (r Request) IsEndOfWatch() bool { return r.Verb == "watch" && r.Stage != "ResponseStarted" }

// IsRefusedIdentity says that the request was to be made as somebody else, and came to
// nothing because the controller may not act as them. Nobody is impersonated then.
func (r Request) IsRefusedIdentity() bool {
	return r.ResponseStatus.Code == http.StatusForbidden && strings.Contains(r.ResponseStatus.Message, " cannot impersonate")
}

// ownResources are what the controller may write in its own name, besides the
// Secrets of its namespace.
var ownResources = []string{"imagepolicies", "clusterextensions", "clustercatalogs", "leases", "events"}

// IsOwn says that a request is about what belongs to the controller itself. All
// else is content of extensions.
func (r Request) IsOwn() bool {
	if r.ObjectRef == nil {
		return false
	}
	if r.ObjectRef.Resource == "secrets" {
		return r.ObjectRef.Namespace == SystemNamespace
	}
	return slices.Contains(ownResources, r.ObjectRef.Resource)
}

// IsRecord says that a request is about the record of a release.
func (r Request) IsRecord() bool {
	return r.ObjectRef != nil && r.ObjectRef.Resource == "secrets" && r.ObjectRef.Namespace == SystemNamespace &&
		strings.HasPrefix(r.ObjectRef.Name, "sh.helm.release.")
}

// ControllerRequests reads from an audit log what the controller sent, in
// whoever's name.
func ControllerRequests(auditLog string) ([]Request, error) {
	return (&AuditLog{Path: auditLog}).ControllerRequests()
}

// AuditLog reads an audit log while it grows, and each line of it once.
type AuditLog struct {
	// Path is that of the file.
	Path string

	mu       sync.Mutex
	read     int64 // bytes
	requests []Request
}

// ControllerRequests are what the controller sent until now, in whoever's name.
func (a *AuditLog) ControllerRequests() ([]Request, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	data, err := a.readOn()
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	requests, err := requestsOf(data, ControllerUser)
	if err != nil {
		return nil, err
	}
	a.requests = append(a.requests, requests...)
	a.read += int64(len(data))
	return slices.Clip(a.requests), nil
}

// RequestsOf reads from an audit log what users sent, in whoever's name; what everybody did if
// none are given.
func RequestsOf(auditLog string, users ...string) ([]Request, error) {
	data, err := (&AuditLog{Path: auditLog}).readOn()
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	return requestsOf(data, users...)
}

func requestsOf(lines []byte, users ...string) ([]Request, error) {
	var requests []Request
	for line := range bytes.Lines(lines) {
		// Most of the log is about others, and decoding takes long.
		if len(users) > 0 && !slices.ContainsFunc(users, func(user string) bool { return bytes.Contains(line, []byte(user)) }) {
			continue
		}
		var request Request
		if err := json.Unmarshal(line, &request); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		if len(users) == 0 || slices.Contains(users, request.User.Username) {
			requests = append(requests, request)
		}
	}
	return requests, nil
}

// readOn gives the lines that have come since the last time. The last line of the
// file may still be without its end.
func (a *AuditLog) readOn() ([]byte, error) {
	file, err := os.Open(a.Path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // was only read
	if _, err := file.Seek(a.read, io.SeekStart); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(file)
	return data[:bytes.LastIndexByte(data, '\n')+1], err
}
