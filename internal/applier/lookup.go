package applier

import (
	"fmt"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/chartlookup"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
)

// Lookup reads the cluster for the templates of a chart, as the ServiceAccount of its extension.
func (a *Applier) Lookup(owner object.Owner) (bundle.ChartLookup, error) {
	client, err := impersonation.As(a.clients, owner.Account(), chartlookup.ClientFor)
	if err != nil {
		return nil, err
	}
	return chartlookup.New(client, a.config.Mapper, fmt.Sprintf("ServiceAccount %q in namespace %q", owner.ServiceAccount, owner.Namespace)), nil
}
