package fromhelm

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/inspect"
	"github.com/clusterextensions/operator-controller/internal/migration/helmstore"
)

// Cluster is a cluster with releases of Helm on it.
type Cluster struct {
	api      dynamic.Interface
	mapper   meta.RESTMapper
	releases *helmstore.Releases
	inspect  *inspect.Cluster
}

// New returns a cluster for a configuration, and for the same cluster as package inspect uses it. It
// sends no request.
func New(config *rest.Config, inspected *inspect.Cluster, now func() time.Time) (*Cluster, error) {
	quiet := rest.CopyConfig(config)
	quiet.WarningHandler = rest.NoWarnings{} // deprecation warnings do not help the user
	through, err := rest.HTTPClientFor(quiet)
	if err != nil {
		return nil, fmt.Errorf("setting up a client: %w", err)
	}
	cluster := &Cluster{inspect: inspected}
	if cluster.mapper, err = apiutil.NewDynamicRESTMapper(quiet, through); err == nil {
		cluster.api, err = dynamic.NewForConfigAndClient(quiet, through)
	}
	var core *corev1client.CoreV1Client
	if err == nil {
		core, err = corev1client.NewForConfigAndClient(quiet, through)
	}
	if err != nil {
		return nil, fmt.Errorf("setting up a client: %w", err)
	}
	cluster.releases = helmstore.New(core, now)
	return cluster, nil
}

// All returns the names of the releases in a namespace, or of the cluster if it is empty, sorted.
func (c *Cluster) All(ctx context.Context, namespace string) ([]helmstore.Name, error) {
	return c.releases.All(ctx, namespace)
}

var (
	extensions = ocv1.GroupVersion.WithResource("clusterextensions")
	accounts   = corev1.SchemeGroupVersion.WithResource("serviceaccounts")
)

// extension reads an extension; nil if there is none.
func (c *Cluster) extension(ctx context.Context, name string) (*ocv1.ClusterExtension, error) {
	live, err := c.api.Resource(extensions).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	ext := &ocv1.ClusterExtension{}
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, ext)
	}
	if err != nil {
		return nil, fmt.Errorf("reading ClusterExtension %q: %w", name, err)
	}
	return ext, nil
}

// isOf reports whether an extension was made from a release.
func isOf(ext *ocv1.ClusterExtension, name helmstore.Name) bool {
	return ext.Annotations[ocv1.MigratedFromHelmReleaseAnnotation] == name.String()
}

// Run is the options of all operations that write.
type Run struct {
	// Timeout bounds each wait for the controller.
	Timeout time.Duration

	// Say is called before each step, with one line of text.
	Say func(line string)

	// Bundle sets the way to read bundles, see [inspect.Request].
	Bundle inspect.Request
}

// pollInterval is the pause between two requests of a wait.
const pollInterval = 500 * time.Millisecond
