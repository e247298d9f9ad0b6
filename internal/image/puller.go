package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/types"
	"k8s.io/utils/lru"

	"github.com/clusterextensions/operator-controller/internal/diskspace"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
	"github.com/clusterextensions/operator-controller/internal/realm"
)

// maxVerdicts is how many verdicts of ImagePolicies are remembered besides those on disk: about
// images that were refused, or are not kept.
const maxVerdicts = 4096

// userAgent tells registries who asks.
const userAgent = "operator-controller"

// Config says where a [Puller] keeps images and how it reaches registries.
// Files named here are read again by every pull, so that edits apply at once.
type Config struct {
	// Dir is the root of the cache. It belongs to one Puller alone.
	Dir string
	// CertsDir holds certificates for all registries: *.crt are authorities,
	// *.cert and *.key are client pairs. Empty means the per-host directories
	// of the system.
	CertsDir string
	// AuthFile holds registry credentials in Docker's format. While it does
	// not exist, the system's own files are used.
	AuthFile string
	// Realms are where the credentials of a registry may go besides its own host.
	Realms realm.Realms
	// PolicyFile is the signature policy. Empty means that of the system
	// (CONTAINERS_POLICY_JSON, then the usual places); where the system has
	// none, every image is accepted, see [Puller.AcceptsAnything]. A policy
	// that exists and cannot be read or parsed is always an error.
	PolicyFile string
	// RequirePolicy makes the absence of a policy an error.
	RequirePolicy bool
	// Policies gives the ImagePolicies as they are now. All of them have to accept an image, and
	// so has the policy of the file. The error says why they are not known: no image is accepted
	// then. Nil means that there are none.
	Policies func() (*imagepolicy.Set, error)
	// RegistriesConf is the main registries.conf file, with others in a directory
	// of the same name and .d. Empty means those of the system
	// (CONTAINERS_REGISTRIES_CONF, then the usual places).
	RegistriesConf string
	// Registries gives the main file in the place of RegistriesConf, for each time that a
	// registry is asked: what it gave before may have been replaced. Nil means that there is
	// no more than RegistriesConf.
	Registries func(context.Context) (string, error)
	// RegistriesDir is the registries.d directory, which says where signatures
	// are. Empty means those of the system.
	RegistriesDir string
	// Space is what all images in the cache may take on disk. Nil means without bound.
	Space *diskspace.Space
	// Limits bounds every image. Zero fields mean the defaults of the
	// request's selection.
	Limits Limits
}

// Puller pulls images into a cache that is shared between all who ask. It is
// safe for concurrent use.
type Puller struct {
	config          Config
	cache           *cache
	pulls           keyedLock // by image and selection
	acceptsAnything bool

	// verdicts are those of this process, by verdictKey.
	verdicts *lru.Cache
}

// Request names an image and the part of it that is wanted.
type Request struct {
	Ref    string
	Select Selection
	// Digest is for a tag what it stood for when its image was pulled before:
	// that image is wanted, wherever the tag points by now. Empty means the
	// image that the tag stands for; a reference with a digest has its own.
	Digest digest.Digest
	// AuthFile gives a credentials file to use for this request instead of
	// [Config.AuthFile], or nothing. It is called once the registry is needed
	// and not before. Nil means that there is none.
	AuthFile func(context.Context) string
	// Audience tells whose credentials these are. What is cached for one is asked of the
	// registry for another before it is theirs. Empty is for all who share what the
	// credentials of the controller, or those of one of them, have brought.
	Audience string
}

// New opens the cache and deletes what an earlier process left unfinished. It
// fails if the cache cannot be written or if the signature policy is
// malformed, unreadable, or missing though required.
func New(config Config) (*Puller, error) {
	if config.Dir == "" {
		return nil, errors.New("image cache directory is required")
	}
	p := &Puller{config: config, verdicts: lru.New(maxVerdicts)}
	policy, err := p.policy()
	if err != nil {
		return nil, err
	}
	p.acceptsAnything = policy.missing
	if p.cache, err = openCache(config.Dir, config.Space); err != nil {
		return nil, fmt.Errorf("opening image cache: %w", err)
	}
	return p, nil
}

// AcceptsAnything reports whether there was no signature policy at the start,
// so that images are accepted from anyone.
func (p *Puller) AcceptsAnything() bool { return p.acceptsAnything }

// Resolve returns repository@digest for the reference of a request as it is
// now. For a reference with a digest that needs no network, for a tag it costs
// one manifest.
func (p *Puller) Resolve(ctx context.Context, req Request) (string, error) {
	parsed, err := parseReference(req.Ref)
	if err != nil {
		return "", err
	}
	if d, pinned := parsed.digest(); pinned {
		return parsed.canonical(d), nil
	}
	src, err := p.open(ctx, parsed, req)
	if err != nil {
		return "", err
	}
	defer src.close()
	return parsed.canonical(src.top.digest), nil
}

// Pull returns the wanted part of an image, from the cache where it is there.
// A reference with a digest that was accepted before needs no network. A
// registry that falls silent is given up on; how long a steady download may
// take is up to ctx. The caller closes the image.
//
// Errors are a *ReferenceError, a *RegistryError, a *PolicyError, a
// *DigestError, a *DiskError, a *diskspace.FullError, or one that matches
// [ErrContent].
func (p *Puller) Pull(ctx context.Context, req Request) (*Image, error) {
	if !req.Select.valid() {
		return nil, fmt.Errorf("pulling image: unknown selection %s", req.Select)
	}
	ref, err := parseReference(req.Ref)
	if err != nil {
		return nil, err
	}
	held, err := p.pull(ctx, ref, req)
	if err != nil {
		return nil, err
	}
	return newImage(ref, held)
}

// Cached returns what [Puller.Pull] would, if that needs no network, and nil if it
// does. It waits for the disk and for nobody else. Errors are as there.
func (p *Puller) Cached(ctx context.Context, req Request) (*Image, error) {
	ref, err := parseReference(req.Ref)
	if err != nil {
		return nil, err
	}
	d, pinned := ref.digest()
	if !pinned {
		d = req.Digest
	}
	if d == "" || !req.Select.valid() {
		return nil, nil //nolint:nilnil // nothing cached is not an error
	}
	if _, err := ref.at(d); err != nil {
		return nil, err
	}
	job, err := p.newPull(ref, req)
	if err != nil {
		return nil, err
	}
	held, err := job.cached(ctx, entryKey{digest: d, sel: req.Select})
	if held == nil || err != nil {
		return nil, err
	}
	return newImage(ref, held)
}

func (p *Puller) pull(ctx context.Context, ref imageRef, req Request) (*lease, error) {
	if _, pinned := ref.digest(); !pinned && req.Digest != "" {
		then, err := ref.at(req.Digest)
		if err != nil {
			return nil, err
		}
		held, err := p.again(ctx, ref, req)
		if held != nil || err != nil {
			return held, err
		}
		ref = then
	}
	job, err := p.newPull(ref, req)
	if err != nil {
		return nil, err
	}
	defer job.close()
	return job.run(ctx)
}

// again returns what is cached of the image that a tag stood for, if the policy
// has accepted it under that tag.
func (p *Puller) again(ctx context.Context, ref imageRef, req Request) (*lease, error) {
	job, err := p.newPull(ref, req)
	if err != nil {
		return nil, err
	}
	return job.cached(ctx, entryKey{digest: req.Digest, sel: req.Select})
}

// Sweep deletes the images whose digest keep does not name. Images that are
// open stay, which is said. It may run at any time. Keep must not call the puller.
func (p *Puller) Sweep(keep func(digest.Digest) bool) (inUse bool, err error) {
	return p.cache.sweep(keep)
}

func (p *Puller) policy() (policy, error) {
	loaded, err := loadPolicy(p.config.PolicyFile)
	if err != nil {
		return policy{}, err
	}
	if loaded.missing && p.config.RequirePolicy {
		return policy{}, errors.New("signature policy is required but there is none: --signature-policy names its file; without that it is looked for where the system has it")
	}
	return loaded, nil
}

// rule is what the ImagePolicies demand of the images of a reference.
func (p *Puller) rule(ref imageRef) (imagepolicy.Rule, error) {
	if p.config.Policies == nil {
		return imagepolicy.Rule{}, nil
	}
	policies, err := p.config.Policies()
	if err != nil {
		return imagepolicy.Rule{}, fmt.Errorf("reading ImagePolicies: %w", err)
	}
	return policies.For(ref.named.Name()), nil
}

// open reaches the registry of a reference with the configuration as it is now.
func (p *Puller) open(ctx context.Context, ref imageRef, req Request) (*source, error) {
	sysregistriesv2.InvalidateCache()
	authFile := ""
	if req.AuthFile != nil {
		authFile = req.AuthFile(ctx)
	}
	registries := p.config.RegistriesConf
	if p.config.Registries != nil {
		var err error
		if registries, err = p.config.Registries(ctx); err != nil {
			return nil, registryError(ctx, "finding mirrors", err)
		}
	}
	limits := p.config.Limits.or(DefaultLimits(req.Select))
	sys := p.systemContext(cmp.Or(authFile, p.config.AuthFile), registries)
	opened, err := openSource(ctx, sys, p.config.Realms, ref, limits)
	if failed, ok := errors.AsType[*RegistryError](err); ok && registries != p.config.RegistriesConf {
		failed.Err = &mirrorsError{files: sysregistriesv2.ConfigurationSourceDescription(sys), err: failed.Err}
	}
	return opened, err
}

func (p *Puller) systemContext(authFile, registriesConf string) *types.SystemContext {
	sys := &types.SystemContext{
		DockerCertPath:           p.config.CertsDir,
		SystemRegistriesConfPath: registriesConf,
		RegistriesDirPath:        p.config.RegistriesDir,
		DockerRegistryUserAgent:  userAgent,
		// Bundles and catalogs are data: they are published for Linux
		// wherever this process runs.
		OSChoice: "linux",
	}
	if registriesConf != "" {
		sys.SystemRegistriesConfDirPath = registriesConf + ".d"
	}
	if _, err := os.Stat(authFile); authFile != "" && !errors.Is(err, fs.ErrNotExist) {
		sys.AuthFilePath = authFile
	}
	return sys
}
