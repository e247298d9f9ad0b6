// Package migration moves operators of classic OLM to ClusterExtensions, and back, as whoever asks.
// [Cluster.Check] says which operators there are, whether each can move, and what would become of its
// objects; [Cluster.Move], [Cluster.Cleanup] and [Cluster.Rollback] write.
//
// What is decided is decided by package classic, and what the controller would do is asked of
// package inspect. For a check, what may not be read fails nothing but what cannot do without it,
// and is said to be not known. A move goes by what its check has found, which is on the extension
// from then on: each step looks first whether it is done, so that it can be called again.
package migration

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/clusterextensions/operator-controller/internal/inspect"
)

// Cluster is a cluster with classic OLM on it.
type Cluster struct {
	api     dynamic.Interface
	objects metadata.Interface
	mapper  meta.RESTMapper
	inspect *inspect.Cluster
}

// New is given how the cluster is reached, and the same cluster as package inspect sees it; nil
// for who only reads. The error says that there is no way to it.
func New(config *rest.Config, inspected *inspect.Cluster) (*Cluster, error) {
	// What is deprecated is read, too, and nobody who asks can help it.
	quiet := rest.CopyConfig(config)
	quiet.WarningHandler = rest.NoWarnings{}
	through, err := rest.HTTPClientFor(quiet)
	if err != nil {
		return nil, fmt.Errorf("setting up a client: %w", err)
	}
	cluster := &Cluster{inspect: inspected}
	if cluster.mapper, err = apiutil.NewDynamicRESTMapper(quiet, through); err == nil {
		cluster.api, err = dynamic.NewForConfigAndClient(quiet, through)
	}
	if err == nil {
		cluster.objects, err = metadata.NewForConfigAndClient(quiet, through)
	}
	if err != nil {
		return nil, fmt.Errorf("setting up a client: %w", err)
	}
	return cluster, nil
}
