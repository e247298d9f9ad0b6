package classic_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/classic"
)

// TestSnapshot has classic OLM run again on a cluster where it had installed real operators, and
// change none of them.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	needClassic(t)
	snapshot, corpus := classic.Snapshot(t), testkit.Corpus(t)
	s := newSite(t, snapshot)
	catalog, err := classic.CorpusCatalog(corpus, classic.SnapshotPackages...)
	must(t, err)
	before := s.generations(t)
	must(t, s.Serve(t.Context(), classic.SnapshotCatalog, catalog))
	within(t, s.Start)
	within(t, func(ctx context.Context) error { return s.AwaitServing(ctx, classic.SnapshotCatalog) })

	subscriptions := &v1alpha1.SubscriptionList{}
	must(t, s.OLM.Admin.List(t.Context(), subscriptions))
	got := map[string]string{}
	for _, subscription := range subscriptions.Items {
		within(t, func(ctx context.Context) error {
			csv, err := s.AwaitSucceeded(ctx, client.ObjectKeyFromObject(&subscription))
			got[subscription.Namespace+"/"+subscription.Name] = csv.Name
			return err
		})
	}
	want := map[string]string{
		"atlas/mongodb-atlas-kubernetes":                        "mongodb-atlas-kubernetes.v1.4.0",
		"grafana/my-grafana":                                    "grafana-operator.v5.6.3",
		"kepler/kepler-operator":                                "kepler-operator.v0.23.0",
		"migration-e2e-ecr-secret/ecr-secret-operator":          "ecr-secret-operator.v0.6.0",
		"rabbit/rabbitmq-messaging-topology-operator":           "rabbitmq-messaging-topology-operator.v1.19.3",
		"rabbit/rabbitmq-cluster-operator-stable-community-olm": "rabbitmq-cluster-operator.v2.22.1",
		"webhook/webhook-operator":                              "webhook-operator.v0.0.5",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is installed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, s.generations(t)); diff != "" {
		t.Errorf("generations of Deployments (-before +after):\n%s", diff)
	}
}

// generations are those of all Deployments but the two of classic OLM, by UID.
func (s *site) generations(t *testing.T) map[string]int64 {
	t.Helper()
	deployments := &appsv1.DeploymentList{}
	must(t, s.OLM.Admin.List(t.Context(), deployments))
	generations := map[string]int64{}
	for _, deployment := range deployments.Items {
		if deployment.Namespace != classic.Namespace {
			generations[string(deployment.UID)+" "+deployment.Name] = deployment.Generation
		}
	}
	return generations
}
