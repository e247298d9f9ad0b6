package cluster_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/cluster"
)

func TestComponentsComeBack(t *testing.T) {
	t.Parallel()
	needClusters(t)
	c := start(t, cluster.Options{Nodes: cluster.NoNodes})
	namespaces := client(t, c.RESTConfig()).CoreV1().Namespaces()
	for _, component := range []string{"kube-apiserver", "etcd"} {
		if err := c.Halt(component); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience/30)
		if _, err := namespaces.List(ctx, metav1.ListOptions{}); err == nil {
			t.Errorf("%s is halted, and namespaces were listed", component)
		}
		cancel()
		if err := c.Resume(component); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, patience, component, func(ctx context.Context) error {
			_, err := namespaces.List(ctx, metav1.ListOptions{})
			return err
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Wait(ctx); err != nil {
		t.Errorf("what was halted counts as lost: %v", err)
	}
	if c.Halt("kubelet") == nil || c.Resume("kubelet") == nil {
		t.Error("a component that there is not was halted, or resumed")
	}
}
