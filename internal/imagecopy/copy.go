package imagecopy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sync/errgroup"

	"github.com/clusterextensions/operator-controller/internal/realm"
)

const (
	// maxRepositories are copied to at a time, and maxBlobs to each: a registry that serves
	// others too is not to be asked for everything at once.
	maxRepositories = 4
	maxBlobs        = 3
)

// Config says how registries are reached. Credentials are those that people have for
// registries on this machine.
type Config struct {
	// CertsDir has certificates for all registries: *.crt are authorities, *.cert and *.key
	// client pairs. Empty means the directories of the system for each host.
	CertsDir string
	// Realms are where credentials may go besides the registries that they are for.
	Realms realm.Realms
	// PlainHTTP says that the target speaks no TLS. It need not for one on this machine.
	PlainHTTP bool
	// silence is [silenceTimeout], unless a test is in a hurry.
	silence time.Duration
}

// Source is where an image may be read.
type Source struct {
	Ref      string
	Insecure bool
}

// Job is an image to be copied.
type Job struct {
	// Name is how people know it.
	Name string
	// Sources are tried in order, until one has the image.
	Sources []Source
	// Repository is where it is to be, and Tag how it is called there: registries may delete
	// what has no tag. Empty means a tag that is made of the digest.
	Repository string
	Tag        string
	// Err is why it cannot be copied whatever registries say; nil if it can.
	Err error
}

// Result is what came of a job.
type Result struct {
	Job

	Digest string
	// Bytes is what the image takes with what is attached to it, and Attached how many
	// manifests that is.
	Bytes    int64
	Attached int
	// Sent are the manifests that the target did not have. Err of the job is why the image is
	// not there whole.
	Sent int
}

// Copier copies images. It is for one run.
type Copier struct {
	config Config
	wire   *wire
}

// New returns a Copier.
func New(config Config) *Copier {
	w := newWire(config.CertsDir, config.Realms)
	w.silence = cmp.Or(config.silence, silenceTimeout)
	return &Copier{config: config, wire: w}
}

// CheckRepository says what is wrong with the name of a target.
func CheckRepository(text string) error {
	_, err := name.NewRepository(text, name.StrictValidation)
	return err
}

// List reads what there would be to copy, and nothing from the target. Results are in the
// order of the jobs; done hears of each as it comes, from one goroutine at a time.
func (c *Copier) List(ctx context.Context, jobs []Job, done func(Result)) []Result {
	return c.each(ctx, jobs, done, func(ctx context.Context, result *Result) error {
		_, _, err := c.find(ctx, result)
		return err
	})
}

// Copy copies the images, as [Copier.List] reads them. One that fails does not keep others
// from being copied.
func (c *Copier) Copy(ctx context.Context, jobs []Job, done func(Result)) []Result {
	return c.each(ctx, jobs, done, c.copy)
}

// each does the jobs, those of one repository one after the other: they have parts in common,
// and registries without an answer for it have one list of what refers to a digest, which two
// would overwrite.
func (c *Copier) each(ctx context.Context, jobs []Job, done func(Result), do func(context.Context, *Result) error) []Result {
	defer c.wire.close()
	results := make([]Result, len(jobs))
	var repositories []string
	of := map[string][]int{}
	for i, job := range jobs {
		if of[job.Repository] == nil {
			repositories = append(repositories, job.Repository)
		}
		of[job.Repository] = append(of[job.Repository], i)
	}
	finished := make(chan int)
	var group errgroup.Group
	group.SetLimit(maxRepositories)
	go func() {
		defer close(finished)
		for _, repository := range repositories {
			group.Go(func() error {
				for _, i := range of[repository] {
					if results[i].Job = jobs[i]; results[i].Err == nil {
						results[i].Err = do(ctx, &results[i])
					}
					finished <- i
				}
				return nil
			})
		}
		_ = group.Wait() // errors are in the results
	}()
	for i := range finished {
		done(results[i])
	}
	return results
}

// find reads the image from the first source that has it.
func (c *Copier) find(ctx context.Context, result *Result) (*tree, *remote.Puller, error) {
	var problems []error
	for _, source := range result.Sources {
		found, puller, err := c.findAt(ctx, source)
		if err == nil {
			result.Digest, result.Attached, result.Bytes = found.top.digest.String(), len(found.attached), found.bytes()
			return found, puller, nil
		}
		problems = append(problems, fmt.Errorf("%s: %w", source.Ref, err))
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
	}
	if len(problems) == 0 {
		return nil, nil, errors.New("no registry is known that has it")
	}
	return nil, nil, errors.Join(problems...)
}

func (c *Copier) findAt(ctx context.Context, source Source) (*tree, *remote.Puller, error) {
	ref, err := name.ParseReference(source.Ref, options(source.Insecure)...)
	if err != nil {
		return nil, nil, err
	}
	reaching, err := c.reach(ctx, ref.Context(), source.Insecure)
	if err != nil {
		return nil, nil, err
	}
	puller, err := remote.NewPuller(reaching...)
	if err != nil {
		return nil, nil, err
	}
	found, err := load(ctx, puller, ref)
	if err != nil {
		return nil, nil, err
	}
	return found, puller, nil
}

func options(insecure bool) []name.Option {
	if insecure {
		return []name.Option{name.Insecure}
	}
	return nil
}

func (c *Copier) reach(ctx context.Context, repository name.Repository, insecure bool) ([]remote.Option, error) {
	transport, err := c.wire.to(endpoint{repository.RegistryStr(), insecure})
	if err != nil {
		return nil, err
	}
	return []remote.Option{
		remote.WithContext(ctx), remote.WithTransport(transport), remote.WithAuthFromKeychain(authn.DefaultKeychain),
	}, nil
}

// copy copies one image.
func (c *Copier) copy(ctx context.Context, result *Result) error {
	found, puller, err := c.find(ctx, result)
	if err != nil {
		return err
	}
	repository, err := name.NewRepository(result.Repository, append(options(c.config.PlainHTTP), name.StrictValidation)...)
	if err != nil {
		return err
	}
	reaching, err := c.reach(ctx, repository, c.config.PlainHTTP)
	if err != nil {
		return err
	}
	pusher, err := remote.NewPusher(reaching...)
	if err != nil {
		return err
	}
	there, err := remote.NewPuller(reaching...)
	if err != nil {
		return err
	}
	w := &writer{from: found.repo, puller: puller, to: repository, there: there, pusher: pusher, done: map[v1.Hash]bool{}}
	found.top.tag = cmp.Or(result.Tag, "mirror-"+found.top.digest.Hex)
	// What is attached comes first: whoever finds the image finds its signatures, too.
	for _, one := range append(slices.Clone(found.attached), found.top) {
		if err := w.write(ctx, one); err != nil {
			result.Sent = w.sent
			return fmt.Errorf("copying to %s: %w", repository, err)
		}
	}
	result.Sent = w.sent
	return nil
}

// writer writes the parts of one image to the target.
type writer struct {
	from   name.Repository
	puller *remote.Puller
	to     name.Repository
	there  *remote.Puller
	pusher *remote.Pusher
	done   map[v1.Hash]bool
	sent   int
}

// write makes sure that the target has a manifest, under its tag if there is one. A registry
// takes a manifest only when it has what that names: where it is, no more is asked.
func (w *writer) write(ctx context.Context, m *manifest) error {
	var ref name.Reference = w.to.Digest(m.digest.String())
	if m.tag != "" {
		ref = w.to.Tag(m.tag)
	} else if w.done[m.digest] {
		return nil
	}
	is, err := w.has(ctx, ref, m.digest)
	if is && m.subject != nil {
		is, err = w.lists(ctx, m)
	}
	if is || err != nil {
		w.done[m.digest] = is
		return err
	}
	if !w.done[m.digest] {
		if err := w.parts(ctx, m); err != nil {
			return err
		}
	}
	if err := w.pusher.Put(ctx, ref, m); err != nil {
		return err
	}
	w.done[m.digest] = true
	w.sent++
	return nil
}

// has tells whether the target has a digest under a reference.
func (w *writer) has(ctx context.Context, ref name.Reference, digest v1.Hash) (bool, error) {
	found, err := w.there.Head(ctx, ref)
	switch {
	case isNotFound(err), isForbidden(err):
		// Some registries say that of a repository that is still to be made.
		return false, nil
	case err != nil:
		return false, err
	}
	return found.Digest == digest, nil
}

// lists tells whether the target says of a manifest that it refers to its subject. A copy that
// was interrupted can have come to the manifest, and not to the list.
func (w *writer) lists(ctx context.Context, m *manifest) (bool, error) {
	list, err := listReferrers(ctx, w.there, w.to, *m.subject)
	return slices.ContainsFunc(list, func(d v1.Descriptor) bool { return d.Digest == m.digest }), err
}

func (w *writer) parts(ctx context.Context, m *manifest) error {
	for _, child := range m.children {
		if err := w.write(ctx, child); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxBlobs)
	for _, blob := range m.blobs {
		group.Go(func() error {
			layer, err := w.puller.Layer(ctx, w.from.Digest(blob.Digest.String()))
			if err == nil {
				err = w.pusher.Upload(ctx, w.to, layer)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", blob.Digest, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// Missing are the results of images that are not there whole, sorted by name.
func Missing(results []Result) []Result {
	missing := slices.DeleteFunc(slices.Clone(results), func(r Result) bool { return r.Err == nil })
	slices.SortFunc(missing, func(a, b Result) int { return strings.Compare(a.Name, b.Name) })
	return missing
}
