package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/clusterextensions/operator-controller/internal/bundlesource"
	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/catalogsource"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
)

// CatalogHelp is what help texts say about where a catalog may be.
const CatalogHelp = `A catalog is a folder, a file, - for standard input, the URL below which it is
served, or else an image, which is pulled. Registries, mirrors and credentials are
those of the system.`

// maxAuthorities is more than all public authorities together need, in bytes.
const maxAuthorities = 4 << 20

const flagAuthority = "certificate-authority"

// Catalogs are the flags of commands that read catalogs. Package catalogsource defines the sources
// of a catalog.
type Catalogs struct {
	images    Images
	authority string
}

// Bind adds the flags to a command.
func (c *Catalogs) Bind(flags *pflag.FlagSet) {
	c.images.Bind(flags)
	BindAuthority(flags, &c.authority, "PEM file with certificate authorities to trust when a catalog is read from an https URL, beside the authorities of the system.")
}

// BindAuthority adds the flag for the PEM file of [HTTPClient].
func BindAuthority(flags *pflag.FlagSet, file *string, usage string) {
	flags.StringVar(file, flagAuthority, "", usage)
}

// Reader reads catalogs as the flags of the command say. The error is an
// *program.UsageError.
func (c *Catalogs) Reader(command *cobra.Command) (*catalogsource.Reader, error) {
	http, err := HTTPClient(command, c.authority)
	if err != nil {
		return nil, err
	}
	return &catalogsource.Reader{Images: c.images.config, HTTP: http, Stdin: command.InOrStdin()}, nil
}

// HTTPClient returns a client for https servers. It trusts the certificate authorities of the
// system and those in a PEM file, which may be "", and uses proxies as the environment sets
// them. The error is an *program.UsageError if the file cannot be used.
func HTTPClient(command *cobra.Command, authority string) (*http.Client, error) {
	if authority == "" {
		return catalogclient.NewHTTPClient("")
	}
	pem, err := readAuthorities(command.Context(), authority, command.InOrStdin())
	if err != nil {
		return nil, &program.UsageError{Err: fmt.Errorf("--%s: %w", flagAuthority, err)}
	}
	return catalogclient.NewHTTPClient("", func() []byte { return pem })
}

// CheckUnused refuses the flag for servers where no catalog is named.
func (*Catalogs) CheckUnused(command *cobra.Command) error {
	if command.Flags().Changed(flagAuthority) {
		return fmt.Errorf("--%s is for catalogs that --catalog names: those of a cluster come through its API server", flagAuthority)
	}
	return nil
}

// Bundles reads bundles with the same flags.
func (c *Catalogs) Bundles() bundlesource.Reader { return c.images.Bundles() }

func readAuthorities(ctx context.Context, path string, stdin io.Reader) ([]byte, error) {
	pem, err := readFile(ctx, path, stdin, maxAuthorities)
	if err == nil && !x509.NewCertPool().AppendCertsFromPEM(pem) {
		err = fmt.Errorf("there is no certificate in %s", path)
	}
	return pem, err
}

// Load reads the catalogs that the command line names. The error is an *program.UsageError,
// or names the catalog that cannot be read.
func (c *Catalogs) Load(command *cobra.Command, texts []string) (*catalogsource.Catalogs, error) {
	reader, err := c.Reader(command)
	if err != nil {
		return nil, err
	}
	return load(command.Context(), reader, texts)
}

func load(ctx context.Context, reader *catalogsource.Reader, texts []string) (*catalogsource.Catalogs, error) {
	sources, err := catalogsource.ParseAll(texts)
	if err != nil {
		return nil, &program.UsageError{Err: err}
	}
	loaded, err := reader.LoadAll(ctx, sources)
	return loaded, CatalogError(err)
}

// CatalogError names the flag that mends an error, where there is one.
func CatalogError(err error) error {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Errorf("%w (--%s names a file with authorities to trust)", err, flagAuthority)
	}
	return err
}
