package controller

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// addChart adds what it takes to render a chart. What comes of its templates goes into the
// release record: they are rendered again for another bundle or another configuration, and where
// nothing was recorded before a try failed.
func (r *Reconciler) addChart(ctx context.Context, options *bundle.Options, content *bundle.Bundle, wanted Wanted, outcome *Outcome) error {
	if content.Chart == nil || r.Charts == nil {
		return nil
	}
	apis, err := r.ServedAPIs()
	if err != nil {
		return fmt.Errorf("rendering a chart: the APIs of the cluster are not known yet: %w", err)
	}
	kubernetes := r.Platform.Kubernetes()
	if kubernetes == "" {
		return errNoVersion // or else it would be that of another cluster
	}
	if options.Config.AllowLookup && r.Lookup != nil {
		if options.Lookup, err = r.Lookup(wanted.Owner); err != nil {
			return fmt.Errorf("rendering a chart: %w", err)
		}
	}
	options.Charts = r.Charts(ctx)
	options.Release = bundle.ChartRelease{
		Name: wanted.Owner.Name, IsUpgrade: outcome.Installed != nil && !outcome.Observed.Installation.Installing,
		Kubernetes: kubernetes, APIs: apis,
	}
	outcome.Told = clusterOf(kubernetes, apis)
	return nil
}

// recordedChart returns what the templates rendered when this revision was begun, or installed, if it is
// to be applied again; nil if they are to be rendered. Values that they generate, such as passwords, are on
// the cluster in part, and would differ in another rendering.
func (r *Reconciler) recordedChart(ctx context.Context, wanted Wanted, outcome Outcome, content *bundle.Bundle, revision installation.Revision) (*bundle.Rendered, error) {
	if content.Chart == nil || !outcome.Observed.isToBeDoneAnew() && !outcome.Observed.Installation.HooksWait {
		return nil, nil
	}
	return r.Releases.Recorded(ctx, wanted.Owner, revision)
}

var errNoVersion = errors.New("rendering a chart: the version of the cluster is not known yet")

// cluster stands for what templates are told of one: its version and its APIs. The zero value
// stands for what is not known.
type cluster [sha256.Size]byte

func clusterOf(kubernetes string, apis []string) (told cluster) {
	hash := sha256.New()
	_, _ = io.WriteString(hash, kubernetes)
	for _, api := range apis {
		_, _ = io.WriteString(hash, "\n"+api)
	}
	hash.Sum(told[:0])
	return told
}

// cluster is what templates would be told of now.
func (r *Reconciler) cluster() cluster {
	kubernetes := r.Platform.Kubernetes()
	apis, err := r.ServedAPIs()
	if kubernetes == "" || err != nil {
		return cluster{}
	}
	return clusterOf(kubernetes, apis)
}

// clusterFor is the zero value where it does not matter.
func (r *Reconciler) clusterFor(extension string) cluster {
	if r.holds.told(extension) == (cluster{}) {
		return cluster{}
	}
	return r.cluster()
}

// refusedOtherwise matches the extensions with a chart that was refused when its templates were
// told of another cluster.
func (r *Reconciler) refusedOtherwise() match {
	now := sync.OnceValue(r.cluster)
	return func(ext *ocv1.ClusterExtension) bool {
		told := r.holds.told(ext.Name)
		return told != (cluster{}) && told.differs(now())
	}
}

// differs is false where nothing is known to compare with.
func (c cluster) differs(now cluster) bool { return now != (cluster{}) && now != c }
