// Command attestations prepares the attestations of a released image: an image layout and the
// files of the release -> one line for each attestation. A line contains a digest, the type of the
// predicate as cosign attest --type calls it, and the file with the predicate.
//
// The image index gets the provenance, the SBOM of the index and, if the release has one, the
// OpenVEX document. The image of each platform gets its own SBOM.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

type options struct {
	// layout is the directory of the image layout.
	layout string
	// files is the directory with the SBOMs and the OpenVEX document of the release.
	files string
	// version is the version of the release, such as v0.1.0.
	version string
	// commit is the commit that the checkout is at.
	commit string
	// out is the directory for the provenance.
	out string
}

// Types of predicates, as cosign attest --type calls them.
const (
	typeProvenance = "slsaprovenance1"
	typeSBOM       = "spdxjson"
	typeVEX        = "openvex"
)

// attestation is one statement about one digest.
type attestation struct {
	digest v1.Hash
	kind   string
	file   string
}

func main() {
	o := options{}
	flag.StringVar(&o.layout, "layout", "bin/image", "the directory of the image layout")
	flag.StringVar(&o.files, "files", "dist", "the directory with the SBOMs of the release")
	flag.StringVar(&o.version, "version", "", "the version of the release")
	flag.StringVar(&o.commit, "commit", "", "the commit that the image was built from")
	flag.StringVar(&o.out, "out", "", "the directory for the provenance")
	flag.Parse()
	prepared, err := run(o, os.Getenv)
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	for _, one := range prepared {
		fmt.Println(one.digest, one.kind, one.file)
	}
}

// run writes the provenance and returns all attestations. The attestations of the index come first.
func run(o options, env func(string) string) ([]attestation, error) {
	read, err := readImage(o.layout)
	if err != nil {
		return nil, err
	}
	made, err := newProvenance(build{
		version: o.version, commit: o.commit, goVersion: strings.TrimPrefix(runtime.Version(), "go"), bases: read.bases, env: env,
	})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(o.out, "provenance.json")
	if err := made.write(file); err != nil {
		return nil, err
	}
	prepared := []attestation{{digest: read.digest, kind: typeProvenance, file: file}}
	prefix := filepath.Join(o.files, "operator-controller_"+strings.TrimPrefix(o.version, "v"))
	add := func(digest v1.Hash, kind, file string) error {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("the release has no %s for %s: %w", kind, digest, err)
		}
		prepared = append(prepared, attestation{digest: digest, kind: kind, file: file})
		return nil
	}
	if err := add(read.digest, typeSBOM, prefix+"_image-index.spdx.json"); err != nil {
		return nil, err
	}
	// A release without known vulnerabilities has no such document.
	if _, err := os.Stat(prefix + ".openvex.json"); err == nil {
		prepared = append(prepared, attestation{digest: read.digest, kind: typeVEX, file: prefix + ".openvex.json"})
	}
	for _, one := range read.platforms {
		if err := add(one.digest, typeSBOM, prefix+"_image-"+one.name+".spdx.json"); err != nil {
			return nil, err
		}
	}
	return prepared, nil
}

// image is the image index of a layout.
type image struct {
	digest    v1.Hash
	platforms []platform
	bases     []base
}

// platform is the image for one platform, by a name such as linux-amd64.
type platform struct {
	name   string
	digest v1.Hash
}

func readImage(dir string) (*image, error) {
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", dir, err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) != 1 || !manifest.Manifests[0].MediaType.IsIndex() {
		return nil, fmt.Errorf("%s has to contain one image index", dir)
	}
	read := &image{digest: manifest.Manifests[0].Digest}
	index, err := top.ImageIndex(read.digest)
	if err != nil {
		return nil, err
	}
	if manifest, err = index.IndexManifest(); err != nil {
		return nil, err
	}
	read.addBase(manifest.Annotations)
	for _, descriptor := range manifest.Manifests {
		one, err := index.Image(descriptor.Digest)
		if err != nil {
			return nil, err
		}
		own, err := one.Manifest()
		if err != nil {
			return nil, err
		}
		read.addBase(own.Annotations)
		read.platforms = append(read.platforms, platform{strings.ReplaceAll(descriptor.Platform.String(), "/", "-"), descriptor.Digest})
	}
	return read, nil
}
