package applier

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
)

// claims are what an OperatorCondition has said when it was read last.
type claims struct {
	installation.Claims

	name        string
	fingerprint object.Fingerprint
}

// Claims are those of the OperatorCondition of that name in the namespace of the extension;
// none if there is no such object. They are read as the ServiceAccount, and not again while
// the object is watched and has not changed.
func (a *Applier) Claims(ctx context.Context, owner object.Owner, name string) (installation.Claims, error) {
	memory := a.memory(owner)
	key := object.Key{GroupKind: object.OperatorConditionKind, Namespace: owner.Namespace, Name: name}
	newest, known := memory.drift.Newest(key)
	if said := memory.claims; said != nil && known && said.name == name && said.fingerprint == newest && len(a.watches.Denied(owner.Name)) == 0 {
		return said.Claims, nil
	}
	memory.claims = nil
	mapping, err := operatorConditionMapping(a.config.Mapper)
	if err != nil || mapping == nil {
		return installation.Claims{}, err // there is no object of a kind that is not served
	}
	client, err := impersonation.As(a.clients, owner.Account(), dynamic.NewForConfigAndClient)
	if err != nil {
		return installation.Claims{}, err
	}
	live, err := client.Resource(mapping.Resource).Namespace(key.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return installation.Claims{}, nil
	}
	if err != nil {
		return installation.Claims{}, err
	}
	read, err := installation.ClaimsOf(live)
	if err != nil {
		return installation.Claims{}, err
	}
	if mapping.GroupVersionKind.Version != operatorConditionVersions[0] {
		read.Unwatched = true // what v1 has in its status changes no fingerprint
		return read, nil
	}
	memory.claims = &claims{Claims: read, name: name, fingerprint: object.FingerprintOf(key.GroupKind, live)}
	return read, nil
}

// operatorConditionVersions are those that can be read, the preferred one first. v2 has the
// conditions of operators in the spec, and v1 in the status.
var operatorConditionVersions = []string{"v2", "v1"}

// operatorConditionMapping is nil if the kind is not served. It fails if it is in other versions
// alone, or if it is not known how it is served: somebody may object then.
func operatorConditionMapping(mapper meta.RESTMapper) (*meta.RESTMapping, error) {
	for _, version := range operatorConditionVersions {
		mapping, err := mapper.RESTMapping(object.OperatorConditionKind, version)
		if err == nil || !meta.IsNoMatchError(err) {
			return mapping, err
		}
	}
	mapping, err := mapper.RESTMapping(object.OperatorConditionKind)
	switch {
	case meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return nil, fmt.Errorf("%s is served as %s alone, and it takes one of %q", object.OperatorConditionKind, mapping.GroupVersionKind.Version, operatorConditionVersions)
}

// Recorded returns what a revision consists of if it is the newest that is recorded, finished or
// not; nil otherwise.
func (a *Applier) Recorded(ctx context.Context, owner object.Owner, revision installation.Revision) (*bundle.Rendered, error) {
	history, err := a.history(ctx, owner)
	if err != nil {
		return nil, err
	}
	defer a.dropInvalid(history)
	defer history.Trim()
	return history.ObjectsOf(ctx, revision)
}

// Begun is the revision that was begun and has not been finished; nil if there is none.
func (a *Applier) Begun(ctx context.Context, owner object.Owner) (*installation.Revision, error) {
	history, err := a.history(ctx, owner)
	if err != nil {
		return nil, err
	}
	defer a.dropInvalid(history)
	defer history.Trim()
	return history.Begun(ctx)
}
