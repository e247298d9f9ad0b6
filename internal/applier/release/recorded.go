package release

import (
	"context"
	"net/http"

	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Recorded gives the objects that the release records of an extension say may be on
// the cluster: those of what is installed, and of each revision that was tried after
// it: each as the last of these has it. It reads, once, as whoever config is, for a process that applies nothing.
func Recorded(ctx context.Context, config *rest.Config, through *http.Client, systemNamespace string, owner object.Owner) ([]*unstructured.Unstructured, error) {
	history, err := recordedHistory(ctx, config, through, systemNamespace, owner)
	if err != nil {
		return nil, err
	}
	return history.Objects(ctx, every)
}

func recordedHistory(ctx context.Context, config *rest.Config, through *http.Client, systemNamespace string, owner object.Owner) (*History, error) {
	records, err := NewConfig(config, through, systemNamespace)
	if err != nil {
		return nil, err
	}
	return loadHistory(ctx, records.records(owner))
}

// Recording is what a release record says of a revision.
type Recording struct {
	installation.Revision

	// Written says that all of its content was on the cluster once, or still is.
	Written bool
}

// Recordings gives what is recorded of all revisions, oldest first. It reads, once, as
// [Recorded] does.
func Recordings(ctx context.Context, config *rest.Config, through *http.Client, systemNamespace string, owner object.Owner) ([]Recording, error) {
	history, err := recordedHistory(ctx, config, through, systemNamespace, owner)
	if err != nil {
		return nil, err
	}
	recordings := make([]Recording, 0, len(history.entries))
	for i := range history.entries {
		found, err := history.read(ctx, &history.entries[i])
		if err != nil {
			return nil, err
		}
		status := history.entries[i].status
		recordings = append(recordings, Recording{
			Revision: revisionFrom(found),
			Written:  found.Manifest != "" && (status == release.StatusDeployed || status == release.StatusSuperseded),
		})
		history.Trim() // each may be as large as a record can be
	}
	return recordings, nil
}
