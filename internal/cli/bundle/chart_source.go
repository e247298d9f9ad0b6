package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/chartrepo"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/helmchart"
)

const (
	flagRepo    = "repo"
	flagVerify  = "verify"
	flagKeyring = "keyring"
)

// maxKeyring bounds a file with public keys, in bytes.
const maxKeyring = 16 << 20

// chartSource is the part of the command line that locates and verifies the archive of a chart.
type chartSource struct {
	repository string
	version    string
	verify     bool
	keyring    string
	authority  string
}

func (s *chartSource) bind(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&s.repository, flagRepo, "", "https URL of a Helm chart repository. The argument is then the name of a chart in it.")
	flags.StringVar(&s.version, flagVersion, "", "With --repo, the version of the chart, or a range such as ^1.0. By default, the newest version that is no prerelease.")
	flags.BoolVar(&s.verify, flagVerify, false, "Push an archive only if it has a provenance file that a key in --keyring has signed.")
	flags.StringVar(&s.keyring, flagKeyring, "", "File with the public keys that may sign the provenance file, as gpg --export writes it.")
	cli.BindAuthority(flags, &s.authority, "PEM file with certificate authorities to trust when a chart is read from an https URL, beside the authorities of the system.")
	cli.NoFiles(command, flagRepo, flagVersion)
}

// check reports flags and arguments that make no sense together.
func (s *chartSource) check(from string) error {
	switch {
	case s.version != "" && s.repository == "":
		return fmt.Errorf("--%s is for a chart of a repository: add --%s", flagVersion, flagRepo)
	case s.verify && s.keyring == "":
		return fmt.Errorf("--%s requires --%s, a file with the public keys that may sign the provenance file", flagVerify, flagKeyring)
	case s.repository != "":
		_, err := chartrepo.ParseAddress(s.repository)
		return err
	case strings.Contains(from, "://"):
		_, err := chartrepo.ParseAddress(from)
		return err
	}
	return nil
}

// isLocal reports whether from is a path on this machine.
func (s *chartSource) isLocal(from string) bool {
	return s.repository == "" && !strings.Contains(from, "://")
}

// provenanceFlag returns the flag for provenance files that is set; "" if none is.
func (s *chartSource) provenanceFlag() string {
	switch {
	case s.verify:
		return flagVerify
	case s.keyring != "":
		return flagKeyring
	}
	return ""
}

// packagedChart is the archive of a chart.
type packagedChart struct {
	from       string // where it was read, for messages
	name       string // of the file; "" for a folder that was packaged
	archive    []byte
	provenance []byte           // its provenance file; nil if there is none
	offered    *chartrepo.Chart // what a repository states about it; nil if it is from none
}

// checkIdentity compares the chart with what the repository states about it.
func (c packagedChart) checkIdentity(files fs.FS) error {
	if c.offered == nil {
		return nil
	}
	content, err := bundle.Parse(files)
	if err != nil {
		return err
	}
	return c.offered.CheckIdentity(content.Chart.Name, content.Chart.Version)
}

// read returns the archive that the command line names, once its digest and its provenance file
// are checked. It prints what was checked, and what was not.
func (s *chartSource) read(command *cobra.Command, from string) (packagedChart, error) {
	keyring, err := s.readKeyring(command)
	if err != nil {
		return packagedChart{}, err
	}
	chart, err := s.open(command, from)
	if err != nil {
		return packagedChart{}, err
	}
	if !bytes.HasPrefix(chart.archive, gzipMagic) {
		return packagedChart{}, fmt.Errorf("%s is no packaged chart: it is not compressed with gzip", chart.from)
	}
	return chart, s.checkProvenance(command, chart, keyring)
}

func (s *chartSource) open(command *cobra.Command, from string) (packagedChart, error) {
	if s.isLocal(from) {
		return readLocal(command, from)
	}
	through, err := cli.HTTPClient(command, s.authority)
	if err != nil {
		return packagedChart{}, err
	}
	defer through.CloseIdleConnections()
	return s.download(command, chartrepo.Client{HTTP: through}, from)
}

// gzipMagic are the first bytes of a file that is compressed with gzip.
var gzipMagic = []byte{0x1f, 0x8b}

// readKeyring returns nil if the command line names no keyring.
func (s *chartSource) readKeyring(command *cobra.Command) (*helmchart.Keyring, error) {
	if s.keyring == "" {
		return nil, nil
	}
	content, err := cli.ReadFile(command, s.keyring, maxKeyring)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flagKeyring, err)
	}
	keyring, err := helmchart.ReadKeyring(content)
	if err != nil {
		return nil, &program.UsageError{Err: fmt.Errorf("--%s %s: %w", flagKeyring, s.keyring, err)}
	}
	return keyring, nil
}

// readLocal reads an archive and the provenance file beside it.
func readLocal(command *cobra.Command, path string) (packagedChart, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return packagedChart{}, program.Misuse(command, fmt.Errorf("there is no folder and no archive %q. For a chart of a repository, add --%s", path, flagRepo))
	}
	archive, err := cli.ReadFile(command, path, chartrepo.MaxArchiveBytes)
	if err != nil {
		return packagedChart{}, err
	}
	provenance, err := cli.ReadFile(command, path+chartrepo.ProvenanceSuffix, chartrepo.MaxProvenanceBytes)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return packagedChart{}, err
	}
	return packagedChart{from: path, name: filepath.Base(path), archive: archive, provenance: provenance}, nil
}

// download reads the archive at an address, or of a chart of a repository, and the provenance
// file beside it.
func (s *chartSource) download(command *cobra.Command, client chartrepo.Client, from string) (chart packagedChart, err error) {
	address, offered, err := s.locate(command, client, from)
	if err != nil {
		return packagedChart{}, err
	}
	chart = packagedChart{from: chartrepo.Shown(address), offered: offered}
	if chart.name, err = chartrepo.FileName(address); err != nil {
		return packagedChart{}, err
	}
	if chart.archive, err = client.Archive(command.Context(), address); err != nil {
		return packagedChart{}, err
	}
	if offered != nil {
		if err := checkOffered(command, *offered, chart.archive); err != nil {
			return packagedChart{}, err
		}
	}
	chart.provenance, err = client.Provenance(command.Context(), address)
	return chart, err
}

// locate returns the address of an archive, and what a repository states about it; nil for an
// address on the command line.
func (s *chartSource) locate(command *cobra.Command, client chartrepo.Client, from string) (*url.URL, *chartrepo.Chart, error) {
	if s.repository == "" {
		address, err := chartrepo.ParseAddress(from)
		return address, nil, err
	}
	versions, err := chartrepo.ParseRange(s.version)
	if err != nil {
		return nil, nil, program.Misuse(command, fmt.Errorf("--%s: %w", flagVersion, err))
	}
	repository, err := chartrepo.ParseAddress(s.repository)
	if err != nil {
		return nil, nil, err
	}
	offered, err := client.Find(command.Context(), repository, from, versions)
	return offered.Address, &offered, err
}

// checkOffered compares an archive with the digest that the index of its repository states.
func checkOffered(command *cobra.Command, offered chartrepo.Chart, archive []byte) error {
	if err := offered.CheckDigest(archive); err != nil {
		return err
	}
	checked := "digest matches index.yaml"
	if offered.Digest == "" {
		checked = "index.yaml states no digest"
	}
	tell(command, fmt.Sprintf("%s: %s", offered, checked))
	return nil
}

// checkProvenance compares the archive with its provenance file. It verifies the signature only if
// there is a keyring.
func (s *chartSource) checkProvenance(command *cobra.Command, chart packagedChart, keyring *helmchart.Keyring) error {
	archive := helmchart.Archive{Name: chart.name, Content: chart.archive}
	switch {
	case chart.provenance == nil && s.verify:
		return fmt.Errorf("%s has no provenance file, which --%s requires", chart.from, flagVerify)
	case chart.provenance == nil:
		tell(command, chart.from+" has no provenance file")
		return nil
	case keyring == nil:
		if err := helmchart.CheckProvenanceDigest(chart.provenance, archive); err != nil {
			return provenanceError(chart, err)
		}
		tell(command, fmt.Sprintf("the digest in the provenance file of %s matches. The signature was not checked: name the keys of the publisher with --%s", chart.from, flagKeyring))
		return nil
	}
	signer, err := keyring.CheckProvenance(chart.provenance, archive)
	if err != nil {
		return provenanceError(chart, err)
	}
	tell(command, fmt.Sprintf("the digest in the provenance file of %s matches. The file is signed by %q with the key %s", chart.from, signer.Identity, signer.Fingerprint))
	return nil
}

func provenanceError(chart packagedChart, err error) error {
	return fmt.Errorf("checking %s against its provenance file: %w", chart.from, err)
}
