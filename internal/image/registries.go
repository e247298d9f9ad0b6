package image

import (
	"fmt"

	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/types"
)

// CheckRegistries tells whether a registries.conf, with the files in the directory of its
// name and .d, can be read.
func CheckRegistries(file string) error {
	_, err := sysregistriesv2.TryUpdatingCache(&types.SystemContext{
		SystemRegistriesConfPath: file, SystemRegistriesConfDirPath: file + ".d",
	})
	if err != nil {
		return fmt.Errorf("reading registries.conf: %w", err)
	}
	return nil
}

// Canonical is a reference as a node reads it, with the registry and the tag that people
// leave out, and without a tag where there is a digest. The error is a *ReferenceError.
func Canonical(text string) (string, error) {
	named, err := reference.ParseNormalizedNamed(text)
	if err != nil {
		return "", &ReferenceError{Ref: text, Err: err}
	}
	ref, err := parseReference(reference.TagNameOnly(named).String())
	if err != nil {
		return "", err
	}
	return ref.named.String(), nil
}

// Endpoint is where an image can be read.
type Endpoint struct {
	Ref string
	// Insecure says that registries.conf lets the registry be asked without TLS, or with a
	// certificate of anybody.
	Insecure bool
}

// Endpoints are those that have an image by registries.conf, in the order in which they are
// tried. A registry that is blocked is not among them.
func Endpoints(registriesConf, text string) ([]Endpoint, error) {
	ref, err := parseReference(text)
	if err != nil {
		return nil, err
	}
	sys := (&Puller{}).systemContext("", registriesConf)
	found, err := endpointsOf(sys, ref.named)
	if err != nil {
		return nil, fmt.Errorf("reading registries.conf: %w", err)
	}
	endpoints := make([]Endpoint, 0, len(found))
	for _, one := range found {
		if !one.blocked {
			endpoints = append(endpoints, Endpoint{Ref: one.ref.String(), Insecure: one.insecure})
		}
	}
	if len(endpoints) == 0 {
		return nil, fmt.Errorf("registries.conf blocks %s", reference.Domain(ref.named))
	}
	return endpoints, nil
}
