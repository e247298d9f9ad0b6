package impersonation

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

type answer func(*http.Request) (*http.Response, error)

func (f answer) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestUser(t *testing.T) {
	t.Parallel()
	for account, want := range map[types.NamespacedName]string{
		{Namespace: "ns", Name: "installer"}: "system:serviceaccount:ns:installer",
		{Namespace: "ns"}:                    "",
		{Name: "installer"}:                  "",
		{}:                                   "",
	} {
		if got := User(account); got != want {
			t.Errorf("%+v is %q, want %q", account, got, want)
		}
	}
}

// TestCallersDoNotChooseAnIdentity: the one header is ours, whatever the request
// came with.
func TestCallersDoNotChooseAnIdentity(t *testing.T) {
	t.Parallel()
	tests := map[string]http.Header{
		"nothing":                 {},
		"another user":            {"Impersonate-User": {"admin"}},
		"two users":               {"Impersonate-User": {"admin", "root"}},
		"a group":                 {"Impersonate-Group": {"system:masters"}},
		"a uid":                   {"Impersonate-Uid": {"1"}},
		"extra":                   {"Impersonate-Extra-Scopes": {"all"}},
		"more extra":              {"Impersonate-Extra-A": {"1"}, "Impersonate-Extra-B%2fC": {"2"}},
		"lower case":              {"impersonate-user": {"admin"}, "impersonate-group": {"system:masters"}},
		"mixed case":              {"IMPERSONATE-User": {"admin"}, "iMpersonate-eXtra-a": {"b"}},
		"what does not exist yet": {"Impersonate-Whatever": {"admin"}},
	}
	for name, headers := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent http.Header
			transport := &roundTripper{user: "system:serviceaccount:ns:installer", next: answer(func(req *http.Request) (*http.Response, error) {
				sent = req.Header
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
			})}
			req := httptest.NewRequest(http.MethodGet, "https://api.test/", nil)
			req.Header = headers.Clone()
			req.Header.Set("Accept", "application/json")
			before := req.Header.Clone()
			response, err := transport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			want := http.Header{"Accept": {"application/json"}, "Impersonate-User": {"system:serviceaccount:ns:installer"}}
			if diff := cmp.Diff(want, sent); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, req.Header); diff != "" {
				t.Errorf("the caller's request was changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIdentityOfTheControllerMustBeItsOwn(t *testing.T) {
	t.Parallel()
	for name, impersonate := range map[string]rest.ImpersonationConfig{
		"user":  {UserName: "somebody"},
		"uid":   {UID: "1"},
		"group": {Groups: []string{"system:masters"}},
		"extra": {Extra: map[string][]string{"scopes": {"all"}}},
	} {
		if _, err := New(&rest.Config{Impersonate: impersonate}); err == nil {
			t.Errorf("%s: a connection that impersonates was accepted", name)
		}
	}
}

// closeNoter is a body that tells that it was closed.
type closeNoter struct {
	io.Reader
	closed atomic.Bool
}

func (c *closeNoter) Close() error {
	c.closed.Store(true)
	return nil
}

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// everyRequest makes each kind of request that there is to content, and gives the
// errors by its name.
func everyRequest(ctx context.Context, t *testing.T, clients *Clients, account types.NamespacedName) map[string]error {
	t.Helper()
	client, err := As(clients, account, dynamic.NewForConfigAndClient)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"},
	}}
	errs := map[string]error{}
	for scope, resource := range map[string]dynamic.ResourceInterface{
		"namespaced": client.Resource(configMaps).Namespace("ns"), "cluster": client.Resource(configMaps),
	} {
		_, errs["get "+scope] = resource.Get(ctx, "a", metav1.GetOptions{})
		_, errs["list "+scope] = resource.List(ctx, metav1.ListOptions{})
		_, errs["watch "+scope] = resource.Watch(ctx, metav1.ListOptions{})
		_, errs["create "+scope] = resource.Create(ctx, object, metav1.CreateOptions{})
		_, errs["patch "+scope] = resource.Patch(ctx, "a", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
		errs["delete "+scope] = resource.Delete(ctx, "a", metav1.DeleteOptions{})
	}
	return errs
}

func TestNothingIsSentWithoutAnIdentity(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		t.Errorf("%s %s was sent as %q", req.Method, req.URL, req.Header.Values("Impersonate-User"))
	}))
	defer server.Close()
	clients, err := New(&rest.Config{Host: server.URL, BearerToken: "of the controller"})
	if err != nil {
		t.Fatal(err)
	}
	for _, account := range []types.NamespacedName{{}, {Namespace: "ns"}, {Name: "installer"}} {
		for name, err := range everyRequest(t.Context(), t, clients, account) {
			if !errors.Is(err, ErrNoIdentity) {
				t.Errorf("%s as %+v: %v, want ErrNoIdentity", name, account, err)
			}
		}
	}
	body := &closeNoter{Reader: strings.NewReader("{}")}
	req := httptest.NewRequest(http.MethodPost, server.URL, body)
	if _, err := (&roundTripper{next: http.DefaultTransport}).RoundTrip(req); !errors.Is(err, ErrNoIdentity) || !body.closed.Load() {
		t.Errorf("err = %v, body closed: %t", err, body.closed.Load())
	}
}

// TestRedirectsAreNotFollowed: neither the identity nor the credentials of the
// controller go where an answer says.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		t.Errorf("%s %s was led elsewhere, with the headers %v", req.Method, req.URL, req.Header)
	}))
	t.Cleanup(elsewhere.Close)
	const account = "system:serviceaccount:ns:installer"
	for _, status := range []int{
		http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect,
	} {
		for name, location := range map[string]string{"host": elsewhere.URL + "/api", "path": "/led-astray"} {
			t.Run(strconv.Itoa(status)+" to another "+name, func(t *testing.T) {
				t.Parallel()
				var requests atomic.Int64
				server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, req *http.Request) {
					requests.Add(1)
					if got := req.Header.Values("Impersonate-User"); !slices.Equal(got, []string{account}) || req.URL.Path == location {
						t.Errorf("%s %s as %q", req.Method, req.URL, got)
					}
					http.Redirect(writer, req, location, status)
				}))
				defer server.Close()
				clients, err := New(&rest.Config{Host: server.URL, BearerToken: "of the controller"})
				if err != nil {
					t.Fatal(err)
				}
				errs := everyRequest(t.Context(), t, clients, types.NamespacedName{Namespace: "ns", Name: "installer"})
				for request, err := range errs {
					if err == nil {
						t.Errorf("%s: a redirect is a success", request)
					}
				}
				if got := requests.Load(); got != int64(len(errs)) {
					t.Errorf("%d requests arrived, want %d", got, len(errs))
				}
			})
		}
	}
}

// TestNothingButSelectedObjectsIsReadAsTheController has every other request that there is to
// content, and those that are nearly right.
func TestNothingButSelectedObjectsIsReadAsTheController(t *testing.T) {
	t.Parallel()
	const ours, query = "olm.example/owner=x", "?labelSelector=olm.example%2Fowner%3Dx"
	const metadata = "application/json;as=PartialObjectMetadata"
	for name, test := range map[string]struct {
		method, base, path string
		accept             string // metadata, if empty
		allowed            bool
	}{
		"list":                            {path: "/api/v1/configmaps" + query, allowed: true},
		"watch":                           {path: "/apis/apps/v1/daemonsets" + query + "&watch=true&resourceVersion=1", allowed: true},
		"behind a path":                   {base: "/k8s/c", path: "/k8s/c/apis/apps/v1/daemonsets" + query, allowed: true},
		"behind a path with a slash":      {base: "/k8s/c/", path: "/k8s/c/api/v1/configmaps" + query, allowed: true},
		"metadata of a list":              {path: "/api/v1/configmaps" + query, accept: metadata + "List;g=meta.k8s.io;v=v1", allowed: true},
		"whole objects":                   {path: "/api/v1/configmaps" + query, accept: "application/json"},
		"whole objects, if need be":       {path: "/api/v1/configmaps" + query, accept: metadata + ";g=meta.k8s.io;v=v1,application/json"},
		"a table":                         {path: "/api/v1/configmaps" + query, accept: "application/json;as=Table;g=meta.k8s.io;v=v1"},
		"Secrets":                         {path: "/api/v1/secrets" + query},
		"Secrets, watched":                {path: "/api/v1/secrets" + query + "&watch=true"},
		"Secrets behind a path":           {base: "/k8s/c", path: "/k8s/c/api/v1/secrets" + query},
		"Deployments":                     {path: "/apis/apps/v1/deployments" + query},
		"Secrets of another API":          {path: "/apis/sample.test/v1/secrets" + query, allowed: true},
		"Deployments of another API":      {path: "/apis/sample.test/v1/deployments" + query, allowed: true},
		"not behind its path":             {base: "/k8s/c", path: "/api/v1/configmaps" + query},
		"create":                          {method: http.MethodPost, path: "/api/v1/configmaps" + query},
		"delete":                          {method: http.MethodDelete, path: "/api/v1/configmaps" + query},
		"all":                             {path: "/api/v1/configmaps"},
		"by no label":                     {path: "/api/v1/configmaps?labelSelector="},
		"by another label":                {path: "/api/v1/configmaps?labelSelector=a%3Db"},
		"by another label too":            {path: "/api/v1/configmaps" + query + "&labelSelector=a%3Db"},
		"one object":                      {path: "/apis/rbac.authorization.k8s.io/v1/clusterroles/a" + query},
		"one namespace":                   {path: "/api/v1/namespaces/ns/configmaps" + query},
		"one object in a namespace":       {path: "/api/v1/namespaces/ns/configmaps/a" + query},
		"one whose namespace is an API":   {path: "/api/v1/namespaces/api/configmaps/a" + query},
		"one that is named like an API":   {path: "/api/v1/namespaces/apis/pods/a/log" + query},
		"a watch of the first kind":       {path: "/api/v1/watch/configmaps" + query},
		"which kinds there are":           {path: "/apis/apps/v1" + query},
		"which kinds there are, slashed":  {path: "/apis/apps/v1/" + query},
		"what is no kind":                 {path: "/logs/a/b/c" + query},
		"what is hidden by another slash": {path: "/api//configmaps" + query},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent []http.Header
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { sent = append(sent, req.Header) }))
			t.Cleanup(server.Close)
			// The end of another server closes connections of the transport that is shared by default.
			clients, err := New(&rest.Config{Host: server.URL + test.base, BearerToken: "of the controller", Transport: &http.Transport{}})
			if err != nil {
				t.Fatal(err)
			}
			through, err := Selecting(clients, ours, func(_ *rest.Config, through *http.Client) (*http.Client, error) { return through, nil })
			if err != nil {
				t.Fatal(err)
			}
			if test.method == "" {
				test.method = http.MethodGet
			}
			if test.accept == "" {
				test.accept = metadata + ";g=meta.k8s.io;v=v1"
			}
			body := &closeNoter{Reader: strings.NewReader("{}")}
			req, err := http.NewRequestWithContext(t.Context(), test.method, server.URL+test.path, body)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Impersonate-User", "admin")
			req.Header.Set("Accept", test.accept)
			response, err := through.Do(req)
			if test.allowed {
				if err != nil || len(sent) != 1 || sent[0].Get("Authorization") != "Bearer of the controller" || sent[0].Get("Impersonate-User") != "" {
					t.Fatalf("%v, and the server gets %v", err, sent)
				}
				_ = response.Body.Close()
				return
			}
			if !errors.Is(err, ErrNotSelecting) || len(sent) > 0 || !body.closed.Load() {
				t.Errorf("%v, want ErrNotSelecting, and the server gets %v; body closed: %t", err, sent, body.closed.Load())
			}
		})
	}
}

// TestNothingButMetadataIsListedAsTheController has requests that would take more for an
// answer, and others that are not lists.
func TestNothingButMetadataIsListedAsTheController(t *testing.T) {
	t.Parallel()
	const (
		things   = "/apis/sample.test/v1/things?limit=500"
		metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	)
	for name, test := range map[string]struct {
		method, path, accept string
		want                 string // what is asked for; empty if nothing is
	}{
		"metadata":                {path: things, accept: metadata, want: metadata},
		"metadata, or else all":   {path: things, accept: metadata + ",application/json", want: metadata},
		"all, or else metadata":   {path: things, accept: "application/json," + metadata, want: metadata},
		"all":                     {path: things, accept: "application/json"},
		"by a label":              {path: things + "&labelSelector=a%3Db", accept: metadata},
		"Secrets":                 {path: "/api/v1/secrets", accept: metadata},
		"Deployments":             {path: "/apis/apps/v1/deployments", accept: metadata},
		"one object":              {path: "/apis/sample.test/v1/things/a", accept: metadata},
		"a deletion of all there": {method: http.MethodDelete, path: things, accept: metadata},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent []string
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { sent = append(sent, req.Header.Get("Accept")) }))
			t.Cleanup(server.Close)
			clients, err := New(&rest.Config{Host: server.URL, Transport: &http.Transport{}})
			if err != nil {
				t.Fatal(err)
			}
			through, err := Listing(clients, func(_ *rest.Config, through *http.Client) (*http.Client, error) { return through, nil })
			if err != nil {
				t.Fatal(err)
			}
			req, err := http.NewRequestWithContext(t.Context(), test.method, server.URL+test.path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Accept", test.accept)
			response, err := through.Do(req)
			if test.want == "" {
				if !errors.Is(err, ErrNotSelecting) || len(sent) > 0 {
					t.Errorf("%v, want ErrNotSelecting, and the server is asked for %q", err, sent)
				}
				return
			}
			if err != nil || len(sent) != 1 || sent[0] != test.want {
				t.Fatalf("%v, and the server is asked for %q", err, sent)
			}
			_ = response.Body.Close()
		})
	}
}

// TestOwnRequestsFollowNoRedirects is about release records, and what is watched as the
// controller.
func TestOwnRequestsFollowNoRedirects(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		t.Errorf("%s %s was led elsewhere, with the headers %v", req.Method, req.URL, req.Header)
	}))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	clients, err := New(&rest.Config{Host: server.URL, BearerToken: "of the controller"})
	if err != nil {
		t.Fatal(err)
	}
	selecting, err := Selecting(clients, "a=b", func(_ *rest.Config, through *http.Client) (*http.Client, error) { return through, nil })
	if err != nil {
		t.Fatal(err)
	}
	for name, client := range map[string]*http.Client{"own": clients.Own(), "selecting": selecting} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/v1/configmaps?labelSelector=a%3Db", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
		answer, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusTemporaryRedirect {
			t.Errorf("%s: got %s (%v), want the redirect itself", name, answer.Status, err)
		}
	}
}

// TestRequestsAreLogged: at V(2), and never what is in them.
func TestRequestsAreLogged(t *testing.T) {
	t.Parallel()
	for verbosity, want := range map[int]string{
		1: "",
		2: `"msg"="request" "verb"="PATCH" "path"="/api/v1/namespaces/n/secrets/s" "query"="dryRun=All" "as"="system:serviceaccount:ns:installer"`,
	} {
		var got string
		logger := funcr.New(func(_, line string) { got += line }, funcr.Options{Verbosity: verbosity})
		transport := &roundTripper{user: "system:serviceaccount:ns:installer", next: answer(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		})}
		req := httptest.NewRequest(http.MethodPatch, "https://api.test/api/v1/namespaces/n/secrets/s?dryRun=All", strings.NewReader("secret"))
		response, err := transport.RoundTrip(req.WithContext(logr.NewContext(t.Context(), logger)))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if strings.TrimPrefix(got, `"level"=2 `) != want {
			t.Errorf("at V(%d): %s", verbosity, got)
		}
	}
}
