package applier

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
)

// maxServedVersions bounds the versions of an API group that are read to find the CRD that has a name.
const maxServedVersions = 10

// holderOfName finds the CustomResourceDefinition that has the name that the workload asks for. Names are unique within
// an API group, and every authenticated user may read the resources that a group serves.
func (a *Applier) holderOfName(ctx context.Context, owner object.Owner, workload health.Workload) (health.Cause, error) {
	_, group, _ := strings.Cut(workload.Key.Name, ".")
	client, err := impersonation.As(a.clients, owner.Account(), func(config *rest.Config, through *http.Client) (rest.Interface, error) {
		config = rest.CopyConfig(config)
		config.GroupVersion = &scheme.Scheme.PrioritizedVersionsForGroup("")[0]
		config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
		return rest.RESTClientForConfigAndClient(config, through)
	})
	if err != nil {
		return health.Cause{}, err
	}
	served := metav1.APIGroup{}
	if err := readServed(ctx, client, &served, "apis", group); err != nil {
		return health.Cause{}, err
	}
	for _, version := range served.Versions[:min(len(served.Versions), maxServedVersions)] {
		resources := metav1.APIResourceList{}
		if err := readServed(ctx, client, &resources, "apis", group, version.Version); err != nil {
			return health.Cause{}, err
		}
		if cause := health.CauseOfTakenName(workload, group, resources.APIResources); cause.Text != "" {
			return cause, nil
		}
	}
	return health.Cause{}, nil
}

func readServed(ctx context.Context, client rest.Interface, into any, path ...string) error {
	body, err := client.Get().AbsPath(path...).SetHeader("Accept", "application/json").Stream(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	return json.NewDecoder(io.LimitReader(body, maxLookBytes)).Decode(into)
}
