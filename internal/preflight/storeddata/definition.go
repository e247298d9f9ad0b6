package storeddata

import (
	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// definition is a CustomResourceDefinition whose schemas are prepared when they
// are asked for: objects are read at one version, and a schema takes some MiB.
type definition struct {
	group    string
	storage  string
	webhook  bool // converts objects between versions
	versions map[string]func() (*version, error)
	writable map[string]bool // by version: served or stored
}

func newDefinition(crd *apiextensionsv1.CustomResourceDefinition) definition {
	d := definition{
		group:    crd.Spec.Group,
		webhook:  crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter,
		versions: map[string]func() (*version, error){},
		writable: map[string]bool{},
	}
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		d.versions[v.Name] = sync.OnceValues(func() (*version, error) { return compile(v, crd.Spec.PreserveUnknownFields) })
		d.writable[v.Name] = v.Served || v.Storage
		if v.Storage {
			d.storage = v.Name
		}
	}
	return d
}

// version gives one of the versions; nil if the definition does not have it.
func (d definition) version(name string) (*version, error) {
	compiled, ok := d.versions[name]
	if !ok {
		return nil, nil
	}
	v, err := compiled()
	if err != nil {
		return nil, fmt.Errorf("version %s: %w", name, err)
	}
	return v, nil
}

// passage is the way of an object that was read at one version, and is stored at
// another, under this definition. If the version is there no more, clients write
// it at the version that is stored from now on. The error says why it cannot be
// known what they write.
func (d definition) passage(read, stored string) (passage, error) {
	written := read
	if !d.writable[read] {
		written = d.storage
		if d.webhook {
			return passage{}, fmt.Errorf("version %s would not be served, and a webhook would convert its objects to %s", read, written)
		}
	}
	p := passage{apiVersion: schema.GroupVersion{Group: d.group, Version: written}.String()}
	var err error
	if p.written, err = d.version(written); err != nil {
		return passage{}, err
	}
	// A webhook may carry a field over to another name: what a version other than
	// that of the object does not know need not be lost.
	if d.webhook {
		return p, nil
	}
	if stored != written {
		if p.decoded, err = d.version(stored); err != nil {
			return passage{}, err
		}
	}
	if d.storage != written {
		if p.stored, err = d.version(d.storage); err != nil {
			return passage{}, err
		}
	}
	return p, nil
}
