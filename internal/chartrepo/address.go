package chartrepo

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// maxShownAddress bounds an address in a message, in bytes.
const maxShownAddress = 512

// ParseAddress parses the https URL of an archive or of a chart repository. Errors contain no
// credentials.
func ParseAddress(text string) (*url.URL, error) {
	address, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("the URL of the chart or of the repository is malformed") // err contains the credentials
	}
	return address, checkAddress(address)
}

func checkAddress(address *url.URL) error {
	if address.Scheme != "https" || address.Host == "" {
		return fmt.Errorf("%s is no https address: charts are read over https only", excerpt.Quote(Shown(address)))
	}
	return nil
}

// FileName returns the last element of the path of an address. The error reports that there is none.
func FileName(address *url.URL) (string, error) {
	name := path.Base(address.Path)
	if name == "." || name == "/" {
		return "", fmt.Errorf("%s names no file", Shown(address))
	}
	return name, nil
}

// Shown returns the scheme, the host and the path of an address for a message: in one line, of at
// most maxShownAddress bytes. The user name and the query are left out, because they can be a token.
func Shown(address *url.URL) string {
	shown := url.URL{Scheme: address.Scheme, Host: address.Host, Path: address.Path, RawPath: address.RawPath}
	return excerpt.Line(shown.String(), maxShownAddress)
}

// address returns the https address of the archive. A relative address is below that of
// the repository. The credentials and the query of the repository, which can be a token, are
// for its own host only.
func (e entry) address(repository *url.URL) (*url.URL, error) {
	if len(e.URLs) == 0 {
		return nil, errors.New("the index states no address of an archive")
	}
	reference, err := url.Parse(e.URLs[0])
	if err != nil {
		return nil, fmt.Errorf("%s is no address", excerpt.Quote(e.URLs[0]))
	}
	address := repository.JoinPath("/").ResolveReference(reference)
	if err := checkAddress(address); err != nil {
		return nil, err
	}
	if !strings.EqualFold(address.Host, repository.Host) {
		return address, nil
	}
	if address.User == nil {
		address.User = repository.User
	}
	if !reference.IsAbs() {
		address.RawQuery = cmp.Or(address.RawQuery, repository.RawQuery)
	}
	return address, nil
}
