//go:build linux

package node_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/operator"
)

// TestNetworkPolicies tries every port of the controller from a pod of an operator. No
// network plugin that enforces policies can be had here: rules of the same effect stand
// for one.
//
//nolint:paralleltest // the rules are for the pods of the moment
func TestNetworkPolicies(t *testing.T) {
	needNode(t)
	const name = "neighbour"
	offer(t, name, nil, "1.0.0")
	extend(t, name, "1.0.0")
	ready(t, name, "1.0.0")
	rolledOut(t)
	neighbours, err := pods(t.Context(), name, name)
	if err != nil || len(neighbours) != 1 {
		t.Fatalf("%d neighbours: %v", len(neighbours), err)
	}
	controllers, err := pods(t.Context(), environment.SystemNamespace, "operator-controller")
	if err != nil || len(controllers) == 0 {
		t.Fatalf("%d controllers: %v", len(controllers), err)
	}
	const health = 8081
	at := func(port int) string { return net.JoinHostPort(controllers[0].Status.PodIP, strconv.Itoa(port)) }
	eventually(t, "the port of health, without policies", func(ctx context.Context) error {
		return theSuite.Dial(ctx, &neighbours[0], at(health))
	})
	if err := theSuite.EnforcePolicies(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := theSuite.StopEnforcing(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for port, allowed := range map[int]bool{8443: true, 7443: true, health: false, 6060: false, 8080: false, 9443: false, 1: false} {
		err := theSuite.Dial(t.Context(), &neighbours[0], at(port))
		var timeout net.Error
		if refused := errors.As(err, &timeout) && timeout.Timeout(); refused == allowed {
			t.Errorf("port %d: allowed is %t, and the answer %v", port, allowed, err)
		}
	}
	// Through the Service, by which clients come.
	if err := theSuite.Dial(t.Context(), &neighbours[0], serviceAddress(t)); err != nil {
		t.Errorf("the catalogs: %v", err)
	}
	// Probes come from the node, and pods reach what they need.
	rolledOut(t)
	kept(t, operator.Variant{Name: name}.Group(), name, "while-enforced")
}

// serviceAddress is where catalogs are served by the Service.
func serviceAddress(t *testing.T) string {
	t.Helper()
	service := named(&corev1.Service{}, environment.SystemNamespace, "catalogd-service")
	if err := theSuite.Admin.Get(t.Context(), client.ObjectKeyFromObject(service), service); err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort(service.Spec.ClusterIP, "443")
}
