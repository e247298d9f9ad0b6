// Package chartlookup answers the function lookup of the templates of Helm charts: names of an
// object -> its JSON, as a cluster has it for whoever asks. It writes nothing, and reads no more
// than [bundle.MaxLookupBytes] of an answer.
package chartlookup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// New reads as whoever the client is, whom messages name so: `ServiceAccount "web/installer"`.
// An object is found by the same path as Helm finds it: one of a kind with namespaces, asked for
// without one, is never found.
func New(client rest.Interface, mapper meta.RESTMapper, who string) bundle.ChartLookup {
	return reader{client: client, mapper: mapper, who: who}.read
}

// ClientFor builds a client for [New].
func ClientFor(config *rest.Config, through *http.Client) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/", &schema.GroupVersion{}
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion() // for errors
	within := *through
	within.Transport = bounded{next: cmp.Or(through.Transport, http.DefaultTransport)}
	return rest.RESTClientForConfigAndClient(config, &within)
}

// bounded reads one byte more of each answer than there may be. Of errors it may be less than all: the
// server of an API can be that of a stranger.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(response.Body, bundle.MaxLookupBytes+1), response.Body}
	return response, nil
}

type reader struct {
	client rest.Interface
	mapper meta.RESTMapper
	who    string
}

func (r reader) read(ctx context.Context, asked bundle.LookupRequest) ([]byte, error) {
	for _, name := range []string{asked.Namespace, asked.Name} {
		if len(rest.IsValidPathSegmentName(name)) > 0 { // a path to something else
			return nil, errors.New("no object can have this name, or be in a namespace with this name")
		}
	}
	kind := asked.Of()
	mapping, err := r.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	switch {
	case kind.Version == "" || meta.IsNoMatchError(err): // without one, it would be the preferred one
		return nil, errors.New("the cluster does not serve such a kind; ask .Capabilities.APIVersions first")
	case err != nil:
		return nil, fmt.Errorf("the kinds of the cluster are not known: %w", err)
	}
	body, err := r.client.Get().AbsPath(pathOf(mapping, asked)).SetHeader("Accept", "application/json").Stream(ctx)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, r.explain(err, mapping.Resource, asked)
	}
	defer func() { _ = body.Close() }()
	text, err := io.ReadAll(body)
	switch {
	case err != nil:
		return nil, r.explain(err, mapping.Resource, asked)
	case len(text) > bundle.MaxLookupBytes:
		return nil, fmt.Errorf("there are more than %d bytes of it", bundle.MaxLookupBytes)
	}
	return text, nil
}

// pathOf is where an object or a list is.
func pathOf(mapping *meta.RESTMapping, asked bundle.LookupRequest) string {
	at := "/apis/" + mapping.Resource.Group
	if mapping.Resource.Group == "" {
		at = "/api"
	}
	at = path.Join(at, mapping.Resource.Version)
	if asked.Namespace != "" && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		at = path.Join(at, "namespaces", asked.Namespace)
	}
	return path.Join(at, mapping.Resource.Resource, asked.Name)
}

// deniedError says which right is lacking. Who looks for the cause finds that of the API server,
// whose words have the name of the object in them.
type deniedError struct {
	text string
	err  error
}

func (e *deniedError) Error() string { return e.text }

func (e *deniedError) Unwrap() error { return e.err }

// explain says what has gone wrong, without any names of objects.
func (r reader) explain(err error, resource schema.GroupVersionResource, asked bundle.LookupRequest) error {
	if apierrors.IsForbidden(err) {
		verb := "get"
		if asked.Name == "" {
			verb = "list"
		}
		return &deniedError{err: err, text: fmt.Sprintf(
			"%s may not %s %s: grant that right, or have lookup find nothing, without spec.config.inline.allowLookup", r.who, verb, resource.GroupResource())}
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return fmt.Errorf("the API server answers %d %s", status.ErrStatus.Code, status.ErrStatus.Reason)
	}
	if sent, ok := errors.AsType[*url.Error](err); ok {
		err = sent.Err // without the path
	}
	return fmt.Errorf("asking the API server: %w", err)
}
