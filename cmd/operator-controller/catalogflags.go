package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/catalogsource"
)

// maxAuthorities is more than all public authorities together need, in bytes.
const maxAuthorities = 4 << 20

const flagAuthority = "certificate-authority"

// catalogFlags are the flags of commands that read catalogs, which can be wherever
// package catalogsource knows.
type catalogFlags struct {
	content   contentFlags
	authority string
}

func (f *catalogFlags) bind(flags *pflag.FlagSet) {
	f.content.bind(flags)
	flags.StringVar(&f.authority, flagAuthority, "",
		"PEM file with authorities to trust when a catalog is read from a https URL, beside those of the system.")
}

// reader reads catalogs as the flags of the command say. The error is a *usageError.
func (f *catalogFlags) reader(command *cobra.Command) (*catalogsource.Reader, error) {
	var trusted []func() []byte
	if f.authority != "" {
		pem, err := readAuthorities(f.authority)
		if err != nil {
			return nil, &usageError{err: err}
		}
		trusted = append(trusted, func() []byte { return pem })
	}
	http, err := catalogclient.NewHTTPClient("", trusted...)
	if err != nil {
		return nil, err
	}
	return &catalogsource.Reader{Images: f.content.images, HTTP: http, Stdin: command.InOrStdin()}, nil
}

func readAuthorities(path string) ([]byte, error) {
	pem, err := readFile(path, maxAuthorities)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flagAuthority, err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--%s: there is no certificate in %s", flagAuthority, path)
	}
	return pem, nil
}

// readFile reads a file that somebody named, as far as it makes sense.
func readFile(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil && info.Size() > limit {
		return nil, tooLarge(path, limit) // without reading it as far as that
	}
	return readBounded(file, path, limit)
}

func readBounded(from io.Reader, name string, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = tooLarge(name, limit)
	}
	return data, err
}

func tooLarge(name string, limit int64) error {
	return fmt.Errorf("%s is larger than %d bytes", name, limit)
}

// parseSources says where the catalogs are. The error is a *usageError.
func parseSources(texts []string) ([]catalogsource.Source, error) {
	sources := make([]catalogsource.Source, 0, len(texts))
	fromStdin := false
	for _, text := range texts {
		if text == catalogsource.Stdin {
			if fromStdin {
				return nil, &usageError{err: errors.New("standard input can be read only once")}
			}
			fromStdin = true
		}
		source, err := catalogsource.Parse(text)
		if err != nil {
			return nil, &usageError{err: err}
		}
		sources = append(sources, source)
	}
	return sources, nil
}

// trustError names the flag that mends an error, where there is one.
func trustError(err error) error {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Errorf("%w (--%s names a file with authorities to trust)", err, flagAuthority)
	}
	return err
}
