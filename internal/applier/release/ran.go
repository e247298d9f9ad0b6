package release

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"helm.sh/helm/v3/pkg/release"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Ran returns the Jobs that were created by the newest revision or those before it, and that the cluster deletes
// after they have finished. If the newest record does not contain them, the installed record does.
func (h *History) Ran(ctx context.Context) (object.Ran, error) {
	if len(h.entries) == 0 {
		return nil, nil
	}
	newest, err := h.read(ctx, &h.entries[len(h.entries)-1])
	if err != nil {
		return nil, err
	}
	if ran := recordedRan(newest); ran != nil {
		return ran, nil
	}
	installed, err := h.installedRelease(ctx)
	if err != nil || installed == nil {
		return nil, err
	}
	return h.ranIn(installed), nil
}

// ranIn returns the Jobs of the installed revision that ran. Helm and earlier versions of the controller write records
// without the label. For these it returns the Jobs whose manifests set ttlSecondsAfterFinished.
func (h *History) ranIn(installed *release.Release) object.Ran {
	if ran := recordedRan(installed); ran != nil {
		return ran
	}
	objects, err := objectsOf(installed.Manifest)
	if err != nil {
		return nil
	}
	ran := object.Ran{}
	for _, job := range objects {
		if object.Expires(job) {
			key := object.KeyOf(job)
			key.Namespace = cmp.Or(key.Namespace, h.records.owner.Namespace)
			ran.Note(key, job)
		}
	}
	return ran
}

// recordedRan returns the Jobs in the label of a record; nil if the record has no valid label.
func recordedRan(rel *release.Release) object.Ran {
	var ran object.Ran
	if err := json.Unmarshal([]byte(rel.Labels[labelRan]), &ran); err != nil {
		return nil
	}
	return ran
}

// encodeRan returns the text for a record.
func encodeRan(ran object.Ran) (string, error) {
	if ran == nil {
		return "", nil
	}
	text, err := json.Marshal(ran)
	if err != nil {
		return "", fmt.Errorf("encoding which Jobs ran: %w", err)
	}
	return string(text), nil
}
