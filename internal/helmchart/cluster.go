package helmchart

import (
	"context"
	"encoding/gob"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// cluster is what the engine of Helm takes for one: it asks who has started this process, and can
// do nothing but that.
type cluster struct {
	encoder *gob.Encoder
	decoder *gob.Decoder
}

func newCluster(asks io.Writer, hears io.Reader) *cluster {
	return &cluster{encoder: gob.NewEncoder(asks), decoder: gob.NewDecoder(hears)}
}

// GetClientFor takes any kind to be in namespaces: who is asked knows whether it is.
func (c *cluster) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return objects{cluster: c, apiVersion: apiVersion, kind: kind}, true, nil
}

// objects are those of one kind, of which the engine asks for some.
type objects struct {
	dynamic.NamespaceableResourceInterface // nil: the engine calls no other methods

	cluster          *cluster
	apiVersion, kind string
	namespace        string
}

func (o objects) Namespace(namespace string) dynamic.ResourceInterface {
	o.namespace = namespace
	return o
}

func (o objects) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	got := &unstructured.Unstructured{}
	return got, o.find(name, got)
}

func (o objects) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	got := &unstructured.UnstructuredList{}
	return got, o.find("", got)
}

func (o objects) find(name string, into runtime.Object) error {
	asked := bundle.LookupRequest{APIVersion: o.apiVersion, Kind: o.kind, Namespace: o.namespace, Name: name}
	if err := o.cluster.encoder.Encode(asked); err != nil {
		return errNoAnswer
	}
	var given lookedUp
	if err := o.cluster.decoder.Decode(&given); err != nil {
		return errNoAnswer
	}
	if given.IsNone {
		return apierrors.NewNotFound(schema.GroupResource{}, name)
	}
	// As clients decode it: whole numbers stay such, and items have a kind.
	return runtime.DecodeInto(unstructured.UnstructuredJSONScheme, given.JSON, into)
}

// noCluster finds nothing, as the engine of Helm does without a cluster. It knows whether it was
// asked, which that does not.
type noCluster struct {
	dynamic.NamespaceableResourceInterface // nil: the engine calls no other methods

	isAsked bool
}

func (n *noCluster) GetClientFor(string, string) (dynamic.NamespaceableResourceInterface, bool, error) {
	n.isAsked = true
	return n, true, nil
}

func (n *noCluster) Namespace(string) dynamic.ResourceInterface { return n }

func (n *noCluster) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{}, name)
}

func (n *noCluster) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{}, "")
}
