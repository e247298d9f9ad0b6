package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// maxConfig is more than the API server takes for an object, in bytes.
const maxConfig = 4 << 20

const flagCertificates = "certificates"

// rendering is how bundles are rendered as the controller does it.
type rendering struct {
	content   contentFlags
	namespace string

	// certificates is asked for bundles with webhooks only.
	certificates func() (bundle.CertificateProvider, error)
}

// render gives the objects of a folder or an image with the configuration, which may
// be empty. An error that a flag mends names it.
func (r rendering) render(ctx context.Context, from string, config []byte) (objects []*unstructured.Unstructured, err error) {
	err = r.content.readBundle(ctx, from, func(files fs.FS) (err error) {
		objects, err = r.renderFiles(files, config)
		return err
	})
	if _, ok := errors.AsType[*bundle.InvalidError](err); ok {
		err = fmt.Errorf("%w\nTry 'operator-controller bundle check %s'", err, from)
	}
	if _, ok := errors.AsType[*bundle.ConfigError](err); ok && len(config) == 0 {
		err = fmt.Errorf("%w\nThe configuration is what the file has that --config names", err)
	}
	return objects, err
}

func (r rendering) renderFiles(files fs.FS, config []byte) ([]*unstructured.Unstructured, error) {
	content, err := bundle.Parse(files)
	if err != nil {
		return nil, err
	}
	options := bundle.Options{InstallNamespace: r.namespace}
	if content.HasWebhooks() {
		if options.Certificates, err = r.certificates(); err != nil {
			return nil, err
		}
	}
	if options.Config, err = bundle.ParseConfig(content, r.namespace, config); err != nil {
		return nil, err
	}
	objects, err := bundle.Render(content, options)
	if err != nil && content.HasWebhooks() && options.Certificates == bundle.NoCertificates {
		err = fmt.Errorf("%w (--%s says who issues their certificates)", err, flagCertificates)
	}
	return objects, err
}

// readConfig reads the file that a flag names; nothing if there is none. The error
// is a *usageError.
func readConfig(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	config, err := readFile(path, maxConfig)
	if err != nil {
		return nil, &usageError{err: err}
	}
	return config, nil
}

// taken gives a provider that a flag names. Where nobody has set the flag, it is told
// once that the certificates of webhooks may come from elsewhere.
func taken(provider bundle.CertificateProvider, flags *pflag.FlagSet, tell io.Writer) func() (bundle.CertificateProvider, error) {
	told := flags.Changed(flagCertificates)
	return func() (bundle.CertificateProvider, error) {
		if !told {
			told = true
			fmt.Fprintf(tell, "the certificates of webhooks are taken to come from %s: --%s says from whom else, "+
				"and 'operator-controller bundle rbac clusterextension/NAME' asks the cluster\n", provider, flagCertificates)
		}
		return provider, nil
	}
}
