package applier

import (
	"context"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/usage"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
)

// NamespacesInUse returns the Namespaces that are deleted with an extension, and the objects in them
// that the extension does not own. It reads them as the ServiceAccount, and makes no request if no
// Namespace was installed.
func (a *Applier) NamespacesInUse(ctx context.Context, owner object.Owner) ([]installation.NamespaceUse, error) {
	content := a.memory(owner).content
	if content == nil {
		var err error
		if content, err = a.recordedContent(ctx, owner); err != nil {
			return nil, err
		}
	}
	var names []string
	for _, one := range withoutKept(content) {
		if one.key.GroupKind == object.NamespaceKind {
			names = append(names, one.key.Name)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	client, err := impersonation.As(a.clients, owner.Account(), metadata.NewForConfigAndClient)
	if err != nil {
		return nil, err
	}
	cluster, err := impersonation.As(a.clients, owner.Account(), discovery.NewDiscoveryClientForConfigAndClient)
	if err != nil {
		return nil, err
	}
	return usage.NamespacesInUse(ctx, client, cluster, owner, names)
}
