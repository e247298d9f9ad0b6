// Package applier_test checks internal/applier on a real API server.
package applier_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/applier"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/test/cluster"
	"github.com/clusterextensions/operator-controller/test/webhook"
)

const (
	systemNamespace = "olmv1-system"
	account         = "installer"
	patience        = 20 * time.Second
)

var (
	theCluster *cluster.Cluster
	admin      client.Client
	services   webhook.Services
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // the library complains, with a stack, when nobody has said where it is to log
	os.Exit(cluster.RunTests(m, cluster.Options{Dial: services.Dial}, prepare))
}

func prepare(ctx context.Context, started *cluster.Cluster) (err error) {
	theCluster = started
	if admin, err = started.Client(); err != nil {
		return err
	}
	services.Use(admin)
	if err := prepareCluster(ctx); err != nil {
		return err
	}
	return prepareControllers(ctx)
}

// prepareCluster installs the owners' kind and the system namespace.
func prepareCluster(ctx context.Context) error {
	data, err := os.ReadFile("../../config/crd/bases/olm.operatorframework.io_clusterextensions.yaml")
	if err != nil {
		return err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		return err
	}
	if err := admin.Create(ctx, crd); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}}
	if err := admin.Create(ctx, namespace); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("olm.operatorframework.io/v1")
		list.SetKind("ClusterExtensionList")
		err := admin.List(ctx, list)
		return err == nil, nil
	})
}

// requests counts what is sent to the API server, by method.
type requests struct {
	mu    sync.Mutex
	lines []string

	// stop, if set, is asked before each request and may refuse it.
	stop func(*http.Request) error

	// answer, if set, gives the body in the place of that of the API server; empty for
	// none. It is set before the requests that it is for.
	answer func(*http.Request) string
}

func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		r.mu.Lock()
		stop := r.stop
		if req.URL.Query().Get("watch") == "" {
			method := req.Method
			if isTrial(req) {
				method = "TRY"
			}
			if req.URL.Query().Get("labelSelector") != "" {
				method = "LIST"
			}
			r.lines = append(r.lines, fmt.Sprintf("%s %s %s", req.Header.Get("Impersonate-User"), method, req.URL.Path))
		}
		r.mu.Unlock()
		if stop != nil {
			if err := stop(req); err != nil {
				return nil, err
			}
		}
		if r.answer != nil {
			if body := r.answer(req); body != "" {
				header := http.Header{"Content-Type": []string{"application/json"}}
				return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
			}
		}
		return next.RoundTrip(req)
	})
}

// isWrite says that the API server is to write something.
func isWrite(req *http.Request) bool {
	return req.Method != http.MethodGet && !isTrial(req) && !isQuestion(req.URL)
}

// isQuestion says that somebody asks for rights.
func isQuestion(url *url.URL) bool { return strings.HasPrefix(url.Path, "/apis/authorization.k8s.io/") }

// isTrial says that the API server is to write nothing.
func isTrial(req *http.Request) bool {
	if req.Method != http.MethodDelete || req.GetBody == nil {
		return req.URL.Query().Get("dryRun") == "All"
	}
	// Of a deletion, all options are in the body.
	body, err := req.GetBody()
	if err != nil {
		return false
	}
	defer body.Close()
	options := metav1.DeleteOptions{}
	return json.NewDecoder(body).Decode(&options) == nil && len(options.DryRun) > 0
}

func (r *requests) setStop(stop func(*http.Request) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop = stop
}

// take gives the requests since the last call.
func (r *requests) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.lines
	r.lines = nil
	return lines
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// fixture is one extension in a namespace of its own.
type fixture struct {
	owner    object.Owner
	applier  *applier.Applier
	requests *requests
	changed  chan string
	mapper   meta.RESTMapper // if set, instead of one that never forgets
	shares   bool            // says that its controller may watch content itself, from the next restart on
	lacking  string          // namespace, as far as is known
	later    atomic.Int64    // nanoseconds by which the applier's clock is ahead
	chunks   int             // bytes of a record in one Secret; zero for the most
}

// newFixture makes an extension whose ServiceAccount may do everything.
func newFixture(t *testing.T, name string) *fixture {
	t.Helper()
	f := newPowerlessFixture(t, name)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.owner.Namespace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: f.owner.Namespace, Name: account}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}
	create(t, binding)
	f.waitAllowed(t)
	return f
}

// waitAllowed waits until the API server knows that the ServiceAccount may
// write.
func (f *fixture) waitAllowed(t *testing.T) {
	t.Helper()
	f.waitMay(t, true, authorizationv1.ResourceAttributes{Verb: "create", Resource: "configmaps"})
}

// waitMay waits until the API server knows whether the ServiceAccount may do
// something in its namespace.
func (f *fixture) waitMay(t *testing.T, want bool, attributes authorizationv1.ResourceAttributes) {
	t.Helper()
	attributes.Namespace = f.owner.Namespace
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               fmt.Sprintf("system:serviceaccount:%s:%s", f.owner.Namespace, account),
			ResourceAttributes: &attributes,
		}}
		err := admin.Create(ctx, review)
		return review.Status.Allowed == want, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func newPowerlessFixture(t *testing.T, name string) *fixture {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	create(t, namespace)
	create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: account}})
	f := &fixture{changed: make(chan string, 1024)}
	f.owner = newOwner(t, name, namespace.Name)
	f.restart(t)
	return f
}

func newOwner(t *testing.T, name, namespace string) object.Owner {
	t.Helper()
	extension := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"namespace":      namespace,
			"serviceAccount": map[string]any{"name": account},
			"source":         map[string]any{"sourceType": "Catalog", "catalog": map[string]any{"packageName": "p"}},
		},
	}}
	extension.SetAPIVersion("olm.operatorframework.io/v1")
	extension.SetKind("ClusterExtension")
	extension.SetName(name)
	create(t, extension)
	return object.Owner{Name: name, UID: extension.GetUID(), Namespace: namespace, ServiceAccount: account, Package: "p"}
}

// restart gives the fixture an applier that knows nothing, as a new process
// does.
func (f *fixture) restart(t *testing.T) {
	t.Helper()
	f.restartWith(t, func(*rest.Config) {})
}

// restartWithSmallChunks is restart with an applier that writes records in several chunks that
// would fit into one.
func (f *fixture) restartWithSmallChunks(t *testing.T) {
	t.Helper()
	f.chunks = 4 << 10
	f.restart(t)
	f.chunks = 0
}

// newMapper is one that never forgets a kind.
func newMapper(t *testing.T) meta.RESTMapper {
	t.Helper()
	httpClient, err := rest.HTTPClientFor(theCluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(theCluster.RESTConfig(), httpClient)
	if err != nil {
		t.Fatal(err)
	}
	return mapper
}

// restartWith is restart over a connection of another kind.
func (f *fixture) restartWith(t *testing.T, connect func(*rest.Config)) {
	t.Helper()
	f.requests = &requests{}
	config := rest.CopyConfig(controller)
	if f.shares {
		config = rest.CopyConfig(sharing)
	}
	connect(config)
	config.Wrap(f.requests.wrap)
	mapper := f.mapper
	if mapper == nil {
		mapper = newMapper(t)
	}
	var err error
	f.applier, err = applier.New(applier.Config{
		REST:            config,
		Mapper:          mapper,
		SystemNamespace: systemNamespace,
		Changed:         func(extension string) { f.changed <- extension },
		LacksNamespace:  func(_ context.Context, namespace string) bool { return namespace != "" && namespace == f.lacking },
		Now:             func() time.Time { return time.Now().Add(time.Duration(f.later.Load())) },
		ChunkBytes:      f.chunks,
	})
	if err != nil {
		t.Fatal(err)
	}
	current := f.applier
	t.Cleanup(func() { current.Forget(f.owner.Name) })
}

func (f *fixture) desired(version string, objects ...*unstructured.Unstructured) installation.Desired {
	return installation.Desired{
		Revision: installation.Revision{
			Bundle: bundle.Identity{Package: "p", Name: "p.v" + version, Version: version},
			Image:  "registry.test/p:v" + version,
			Inputs: "sha256:inputs",
		},
		Objects: objects,
	}
}

func (f *fixture) apply(t *testing.T, version string, objects ...*unstructured.Unstructured) installation.Result {
	t.Helper()
	return f.applyDesired(t, f.desired(version, objects...))
}

func (f *fixture) applyDesired(t *testing.T, desired installation.Desired) installation.Result {
	t.Helper()
	result, err := f.applier.Apply(t.Context(), f.owner, desired)
	if err != nil {
		t.Fatalf("applying %s: %v", desired.Bundle.Version, err)
	}
	return result
}

func (f *fixture) observe(t *testing.T) installation.State {
	t.Helper()
	state, err := f.applier.Observe(t.Context(), f.owner)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// settle waits until the watches have reported all there is, so that what comes
// next is news.
func (f *fixture) settle(t *testing.T) {
	t.Helper()
	for {
		select {
		case <-f.changed:
		case <-time.After(time.Second):
			if _, err := f.applier.Repair(t.Context(), f.owner); err != nil {
				t.Fatal(err)
			}
			f.requests.take()
			return
		}
	}
}

// waitForChange waits for a watch to report something, and gives the extension
// that it concerns.
func (f *fixture) waitForChange(t *testing.T) (extension string) {
	t.Helper()
	select {
	case extension = <-f.changed:
	case <-time.After(patience):
		t.Fatal("no change was noticed")
	}
	return extension
}

func create(t *testing.T, object client.Object) {
	t.Helper()
	if err := admin.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.Delete(context.Background(), object); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
}

func configMap(name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name},
		"data":     map[string]any{"key": value},
	}}
}

// live reads a ConfigMap of the fixture; nil if there is none.
func (f *fixture) live(t *testing.T, name string) *corev1.ConfigMap {
	t.Helper()
	found := &corev1.ConfigMap{}
	err := admin.Get(t.Context(), client.ObjectKey{Namespace: f.owner.Namespace, Name: name}, found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// records reads the release records of the fixture.
func (f *fixture) records(t *testing.T) []corev1.Secret {
	t.Helper()
	list := &corev1.SecretList{}
	err := admin.List(t.Context(), list, client.InNamespace(systemNamespace), client.MatchingLabels{"type": "index", "name": f.owner.Name})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// logged gives a context with a log, and its lines so far.
func logged(t *testing.T) (context.Context, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var lines []string
	logger := funcr.New(func(_, args string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, args)
	}, funcr.Options{})
	return log.IntoContext(t.Context(), logger), func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(lines)
	}
}
