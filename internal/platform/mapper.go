package platform

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Mapper gives the resources of kinds. A kind that was there once is gone with its
// definition, and one that comes back is what it is then: after the definitions have
// changed, nothing that was read before is believed. There is no request before
// somebody asks, and of kinds that are there none in a world that does not change.
// A kind that is not there is looked for each time.
//
// Start has to run for that. Without it the mapper never learns that a kind is gone.
func (p *Platform) Mapper() meta.RESTMapper { return &mapper{platform: p} }

// mapper hands every question to one that reads discovery when it does not know a
// kind, and replaces that one when its time is over.
type mapper struct {
	platform *Platform

	mu   sync.Mutex
	turn int64
	read meta.RESTMapper // nil until somebody has asked
}

// now is the mapper that may be believed.
func (m *mapper) now() (meta.RESTMapper, error) {
	m.platform.mapping.Do(func() { close(m.platform.mapped) })
	m.mu.Lock()
	defer m.mu.Unlock()
	if turn := m.platform.turn.Load(); m.read == nil || m.turn != turn {
		read, err := apiutil.NewDynamicRESTMapper(m.platform.cfg.REST, m.platform.bounded)
		if err != nil {
			return nil, err
		}
		m.read, m.turn = read, turn
	}
	return m.read, nil
}

func asking[A, B any](m *mapper, question func(meta.RESTMapper, A) (B, error), about A) (B, error) {
	current, err := m.now()
	if err != nil {
		var none B
		return none, err
	}
	return question(current, about)
}

func (m *mapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return asking(m, meta.RESTMapper.KindFor, resource)
}

func (m *mapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return asking(m, meta.RESTMapper.KindsFor, resource)
}

func (m *mapper) ResourceFor(resource schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return asking(m, meta.RESTMapper.ResourceFor, resource)
}

func (m *mapper) ResourcesFor(resource schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return asking(m, meta.RESTMapper.ResourcesFor, resource)
}

func (m *mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	current, err := m.now()
	if err != nil {
		return nil, err
	}
	return current.RESTMapping(kind, versions...)
}

func (m *mapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	current, err := m.now()
	if err != nil {
		return nil, err
	}
	return current.RESTMappings(kind, versions...)
}

func (m *mapper) ResourceSingularizer(resource string) (string, error) {
	return asking(m, meta.RESTMapper.ResourceSingularizer, resource)
}
