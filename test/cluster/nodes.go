package cluster

import (
	"context"
	"fmt"
	"runtime"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// KWOK manages the nodes that carry this annotation.
const (
	kwokNodeAnnotation = "kwok.x-k8s.io/node"
	kwokNodeFake       = "fake"
)

// createNodes creates simulated nodes; KWOK makes them ready.
func createNodes(ctx context.Context, client kubernetes.Interface, count int) error {
	for i := range count {
		node := simulatedNode("node-" + strconv.Itoa(i))
		_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		// A snapshot may have it.
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating node %s: %w", node.Name, err)
		}
	}
	return nil
}

func simulatedNode(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{kwokNodeAnnotation: kwokNodeFake},
			Labels: map[string]string{
				corev1.LabelHostname:   name,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: runtime.GOARCH,
			},
		},
	}
}

// nodesUsable is nil when pods can be scheduled on the given number of nodes.
func nodesUsable(ctx context.Context, client kubernetes.Interface, count int) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	usable := 0
	for i := range nodes.Items {
		if nodeUsable(&nodes.Items[i]) {
			usable++
		}
	}
	if usable < count {
		return fmt.Errorf("%d of %d nodes are ready", usable, count)
	}
	return nil
}

// nodeUsable wants the taints of a new node to be gone, too: they go a moment
// after it has become ready.
func nodeUsable(node *corev1.Node) bool {
	if len(node.Spec.Taints) > 0 {
		return false
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
