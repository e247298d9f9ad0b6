// Command vex makes the OpenVEX document of a release: OpenVEX documents that govulncheck has
// written, one for each operating system -> one document, on standard output, that names the
// products of the release.
//
// govulncheck names no product and no author, and states "affected" without an action, which OpenVEX
// requires.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

type options struct {
	// version is the version of the release.
	version string
	// image is the name of the image of the release, with a tag.
	image string
	// layout is the directory of an image layout. The document names the image by digest if the
	// layout contains an image of that name, and no image otherwise.
	layout string
	// files are the documents of govulncheck.
	files []string
}

func main() {
	o := options{}
	flag.StringVar(&o.version, "version", "", "the version of the release")
	flag.StringVar(&o.image, "image", "", "the name of the image, with a tag")
	flag.StringVar(&o.layout, "layout", "", "the directory of the image layout")
	flag.Parse()
	o.files = flag.Args()
	if err := run(o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// run prints the document. It prints nothing if govulncheck has found nothing: OpenVEX has no
// document without a statement.
func run(o options, to io.Writer) error {
	if o.version == "" || len(o.files) == 0 {
		return errors.New("--version and at least one file are required")
	}
	products, err := o.products()
	if err != nil {
		return err
	}
	var all []document
	for _, file := range o.files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		read := document{}
		if err := json.Unmarshal(text, &read); err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		all = append(all, read)
	}
	merged := merge(all)
	if len(merged.Statements) == 0 {
		return nil
	}
	merged.name(o.version, products)
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(merged)
}

// products returns the package URLs of what a release consists of.
func (o options) products() ([]string, error) {
	found := []string{"pkg:golang/" + modulePath + "@" + o.version}
	text, err := os.ReadFile(filepath.Join(o.layout, "index.json"))
	if o.layout == "" || errors.Is(err, os.ErrNotExist) {
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	var index struct {
		Manifests []struct {
			Digest      string            `json:"digest"`
			Annotations map[string]string `json:"annotations"`
		} `json:"manifests"`
	}
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("reading %s: %w", o.layout, err)
	}
	for _, one := range index.Manifests {
		if one.Annotations["org.opencontainers.image.ref.name"] == o.image {
			repository := strings.TrimSuffix(o.image, ":"+o.version)
			name := repository[strings.LastIndex(repository, "/")+1:]
			found = append(found, "pkg:oci/"+name+"@"+strings.ReplaceAll(one.Digest, ":", "%3A")+"?repository_url="+repository)
		}
	}
	return found, nil
}
