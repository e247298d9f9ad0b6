package webhook

import (
	"context"
	"fmt"
	"net"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Services leads calls of Services to servers of tests. There is nothing else
// behind a Service of the local cluster. Its Dial is a [cluster.Dialer].
type Services struct {
	mu      sync.Mutex
	reader  client.Reader
	servers map[types.NamespacedName]string
}

// Use tells where to look Services up, once there is a cluster.
func (s *Services) Use(reader client.Reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reader = reader
}

// Lead has all calls of a Service go to an address on this machine.
func (s *Services) Lead(service types.NamespacedName, address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.servers == nil {
		s.servers = map[types.NamespacedName]string{}
	}
	s.servers[service] = address
}

// Dial connects to the server behind the cluster's address of a Service.
func (s *Services) Dial(ctx context.Context, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("reading the address of a Service: %w", err)
	}
	s.mu.Lock()
	reader := s.reader
	s.mu.Unlock()
	if reader == nil {
		return nil, fmt.Errorf("%s is called before there are Services", address)
	}
	list := &corev1.ServiceList{}
	if err := reader.List(ctx, list); err != nil {
		return nil, fmt.Errorf("looking for the Service at %s: %w", host, err)
	}
	for i := range list.Items {
		if service := &list.Items[i]; service.Spec.ClusterIP == host {
			return s.dialServer(ctx, client.ObjectKeyFromObject(service))
		}
	}
	return nil, fmt.Errorf("there is no Service at %s", host)
}

func (s *Services) dialServer(ctx context.Context, service types.NamespacedName) (net.Conn, error) {
	s.mu.Lock()
	server, ok := s.servers[service]
	s.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("there is nothing behind Service %q", service)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", server)
}
