package storeddata

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// definition is a CustomResourceDefinition whose schemas are ready for use.
type definition struct {
	group    string
	storage  string
	webhook  bool // converts objects between versions
	versions map[string]*version
	writable map[string]bool // by version: served or stored
}

// compile prepares all versions.
func compile(crd *apiextensionsv1.CustomResourceDefinition) (definition, error) {
	d := outline(crd)
	for i := range crd.Spec.Versions {
		v, err := compileVersion(crd, &crd.Spec.Versions[i])
		if err != nil {
			return definition{}, fmt.Errorf("version %s: %w", crd.Spec.Versions[i].Name, err)
		}
		d.versions[v.name] = v
	}
	return d, nil
}

// compileKnown prepares those versions that can be; the others forbid nothing.
func compileKnown(crd *apiextensionsv1.CustomResourceDefinition) definition {
	d := outline(crd)
	for i := range crd.Spec.Versions {
		if v, err := compileVersion(crd, &crd.Spec.Versions[i]); err == nil {
			d.versions[v.name] = v
		}
	}
	return d
}

func outline(crd *apiextensionsv1.CustomResourceDefinition) definition {
	d := definition{
		group:    crd.Spec.Group,
		webhook:  crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter,
		versions: map[string]*version{},
		writable: map[string]bool{},
	}
	for _, v := range crd.Spec.Versions {
		d.writable[v.Name] = v.Served || v.Storage
		if v.Storage {
			d.storage = v.Name
		}
	}
	return d
}

// passage is the way of an object that was read at one version, and is stored at
// another, under this definition. If the version is there no more, clients write
// it at the version that is stored from now on. Why it cannot be known what they
// write is the second result.
func (d definition) passage(read, stored string) (_ passage, unknown string) {
	written := read
	if !d.writable[read] {
		written = d.storage
		if d.webhook {
			return passage{}, fmt.Sprintf("version %s would not be served, and a webhook would convert its objects to %s", read, written)
		}
	}
	p := passage{
		apiVersion: schema.GroupVersion{Group: d.group, Version: written}.String(),
		written:    d.versions[written],
	}
	// A webhook may carry a field over to another name: what a version other than
	// that of the object does not know need not be lost.
	if d.webhook {
		return p, ""
	}
	if stored != written {
		p.decoded = d.versions[stored]
	}
	if d.storage != written {
		p.stored = d.versions[d.storage]
	}
	return p, ""
}
