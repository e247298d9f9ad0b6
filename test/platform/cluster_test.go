// Package platform_test checks internal/platform on a real API server.
package platform_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/platform"
	"github.com/clusterextensions/operator-controller/test/cluster"
)

const limit = 30 * time.Second

var (
	admin      client.Client
	controller *rest.Config // with the rights of config/rbac
)

func TestMain(m *testing.M) {
	os.Exit(cluster.RunTests(m, cluster.Options{}, prepare))
}

func prepare(ctx context.Context, started *cluster.Cluster) (err error) {
	if admin, err = started.Client(); err != nil {
		return err
	}
	if controller, err = started.ConfigFor("controller"); err != nil {
		return err
	}
	return grant(ctx)
}

// grant gives the controller the ClusterRole that it is installed with.
func grant(ctx context.Context) error {
	data, err := os.ReadFile("../../config/rbac/manager_cluster_role.yaml")
	if err != nil {
		return err
	}
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(data, role); err != nil {
		return err
	}
	if err := admin.Create(ctx, role); err != nil {
		return err
	}
	return admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "controller"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "controller"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	})
}

func definition(group string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group,
			Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		},
	}
}

// counter counts the reads of discovery, and tells of each.
type counter struct {
	next http.RoundTripper
	all  atomic.Int64
	read chan struct{}
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.all.Add(1)
	response, err := c.next.RoundTrip(r)
	if r.URL.Path == "/apis" {
		c.read <- struct{}{}
	}
	return response, err
}

// awaitRead waits for a read that begins after the call, and for what is done
// about it.
func (c *counter) awaitRead(t *testing.T) {
	t.Helper()
	for len(c.read) > 0 {
		<-c.read
	}
	// The first may have begun before, and the last is not dealt with yet.
	for range 3 {
		await(t, "a read", c.read)
	}
}

func await(t *testing.T, what string, event <-chan struct{}) {
	t.Helper()
	select {
	case <-event:
	case <-time.After(limit):
		t.Fatalf("%s did not come", what)
	}
}

func TestOnAnAPIServer(t *testing.T) {
	t.Parallel()
	transport, err := rest.TransportFor(controller)
	if err != nil {
		t.Fatal(err)
	}
	requests := &counter{next: transport, read: make(chan struct{}, 1024)}
	changed := make(chan struct{}, 1024)
	p := newPlatform(t, platform.Config{
		REST:       controller,
		HTTPClient: &http.Client{Transport: requests},
		Changed:    func() { changed <- struct{}{} },
		Regranted:  func() {},
	})
	served := func(group, kind string) bool {
		serves, err := p.APIs()
		if err != nil {
			t.Fatal(err)
		}
		return serves(group, "v1", kind)
	}

	if p.Kubernetes() == "" {
		t.Error("the version of Kubernetes is not known")
	}
	if got := p.OpenShift(); got != "" {
		t.Errorf("the version of OpenShift is %q", got)
	}
	if n := requests.all.Load(); n != 2 {
		t.Errorf("%d requests before anybody asked for APIs, want 2 for the versions", n)
	}

	_, _ = p.APIs()
	await(t, "the first answer", changed)
	if !served("apps", "Deployment") || served("widgets.test", "Widget") {
		t.Error("the first answer is wrong")
	}

	widgets := definition("widgets.test")
	if err := admin.Create(t.Context(), widgets); err != nil {
		t.Fatal(err)
	}
	await(t, "the change", changed)
	if !served("widgets.test", "Widget") {
		t.Error("a kind is not served after its definition was created")
	}

	annotated := widgets.DeepCopy()
	annotated.Annotations = map[string]string{"a": "b"}
	if err := admin.Patch(t.Context(), annotated, client.MergeFrom(widgets)); err != nil {
		t.Fatal(err)
	}
	requests.awaitRead(t)
	if len(changed) > 0 {
		t.Error("a change was told although an annotation changes nothing")
	}

	if err := admin.Delete(t.Context(), widgets); err != nil {
		t.Fatal(err)
	}
	await(t, "the change", changed)
	if served("widgets.test", "Widget") {
		t.Error("a kind is served after its definition was deleted")
	}
	requests.awaitRead(t)
	if len(changed) > 0 {
		t.Error("the change was told more than once")
	}
}

// TestGrantsOnAnAPIServer has every kind of grant change, with the rights that the
// controller is installed with.
func TestGrantsOnAnAPIServer(t *testing.T) {
	t.Parallel()
	told := make(chan struct{}, 1024)
	p := newPlatform(t, platform.Config{
		REST:       controller,
		HTTPClient: httpClient(t),
		Changed:    func() {},
		Regranted:  func() { told <- struct{}{} },
	})
	p.FollowGrants()
	// The watches may begin apart from each other.
	await(t, "the first call", told)
	for {
		select {
		case <-told:
			continue
		case <-time.After(3 * time.Second):
		}
		break
	}

	name := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "grants"}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "somebody"}}
	for _, grant := range []client.Object{
		&rbacv1.Role{ObjectMeta: name},
		&rbacv1.RoleBinding{ObjectMeta: name, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name}},
		&rbacv1.ClusterRole{ObjectMeta: name},
		&rbacv1.ClusterRoleBinding{ObjectMeta: name, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name}},
	} {
		if err := admin.Create(t.Context(), grant); err != nil {
			t.Fatal(err)
		}
		await(t, fmt.Sprintf("a call for a %T", grant), told)
	}
}

func httpClient(t *testing.T) *http.Client {
	t.Helper()
	made, err := rest.HTTPClientFor(controller)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// newPlatform runs a Platform until the test ends.
func newPlatform(t *testing.T, config platform.Config) *platform.Platform {
	t.Helper()
	p, err := platform.New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return p
}
