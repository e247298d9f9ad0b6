package classic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing/fstest"
	"text/template"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/property"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/clusterextensions/operator-controller/internal/catalogrender"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// Registry is the host name in the references of images that [NewCatalog] makes.
const Registry = "registry.test"

// Channel is the one that packages of [NewCatalog] have.
const Channel = "stable"

// Catalog is a file-based catalog, and the bundles whose images it names, by these names.
// Classic OLM and a ClusterCatalog can be given the same.
type Catalog struct {
	Files   fs.FS
	Bundles map[string]fs.FS
}

// NewCatalog is a catalog of bundles, with one channel for each package, in which each
// bundle replaces the one of its package before it.
func NewCatalog(ctx context.Context, bundles ...fs.FS) (_ Catalog, err error) {
	scratch, err := os.MkdirTemp("", "operator-controller-classic-")
	if err != nil {
		return Catalog{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	var folders []string
	for i, bundle := range bundles {
		folder := filepath.Join(scratch, fmt.Sprint(i))
		if err := os.CopyFS(folder, bundle); err != nil {
			return Catalog{}, fmt.Errorf("writing a bundle: %w", err)
		}
		folders = append(folders, folder)
	}
	renderer := catalogrender.Renderer{
		ImageOf: template.Must(template.New("").Parse(Registry + "/{{.Package}}:v{{.Version}}")),
		Note:    func(string, string) {},
	}
	rendered, err := renderer.All(ctx, folders)
	if err != nil {
		return Catalog{}, err
	}
	catalog := Catalog{Bundles: map[string]fs.FS{}}
	for i, bundle := range rendered.Bundles {
		catalog.Bundles[bundle.Image] = bundles[i]
		offer(rendered, bundle)
	}
	catalog.Files, err = written(rendered)
	return catalog, err
}

// offer puts a bundle at the end of the channel of its package.
func offer(in *declcfg.DeclarativeConfig, bundle declcfg.Bundle) {
	entry := declcfg.ChannelEntry{Name: bundle.Name}
	i := slices.IndexFunc(in.Channels, func(c declcfg.Channel) bool { return c.Package == bundle.Package })
	if i < 0 {
		i = len(in.Channels)
		in.Packages = append(in.Packages, declcfg.Package{Schema: declcfg.SchemaPackage, Name: bundle.Package, DefaultChannel: Channel})
		in.Channels = append(in.Channels, declcfg.Channel{Schema: declcfg.SchemaChannel, Name: Channel, Package: bundle.Package})
	} else {
		entry.Replaces = in.Channels[i].Entries[len(in.Channels[i].Entries)-1].Name
	}
	in.Channels[i].Entries = append(in.Channels[i].Entries, entry)
}

// CorpusCatalog is what the catalog of the corpus, see [testkit.Corpus], has of packages.
func CorpusCatalog(corpus string, packages ...string) (Catalog, error) {
	files, bundles := fstest.MapFS{}, map[string]fs.FS{}
	for _, pkg := range packages {
		text, err := os.ReadFile(filepath.Join(corpus, "catalog", pkg, "catalog.json"))
		if err != nil {
			return Catalog{}, fmt.Errorf("reading the catalog of the corpus: %w", err)
		}
		files[pkg+"/catalog.json"] = &fstest.MapFile{Data: text}
		versions, err := os.ReadDir(filepath.Join(corpus, "bundles", pkg))
		if err != nil {
			return Catalog{}, fmt.Errorf("reading the bundles of the corpus: %w", err)
		}
		for _, version := range versions {
			bundles[fmt.Sprintf("%s/%s:v%s", Registry, pkg, version.Name())] = os.DirFS(filepath.Join(corpus, "bundles", pkg, version.Name()))
		}
	}
	return Catalog{Files: files, Bundles: bundles}, nil
}

// Push pushes the bundles to the registry of an environment that stands for the host of
// their names, and the catalog under repository:tag, for a ClusterCatalog.
func (c Catalog) Push(ctx context.Context, to *environment.Environment, target string) error {
	for image, bundle := range c.Bundles {
		_, repository, _ := strings.Cut(image, "/")
		if err := to.PushBundle(ctx, repository, bundle); err != nil {
			return err
		}
	}
	return to.PushCatalog(ctx, target, c.Files)
}

// inline is the catalog as classic OLM takes it without a pod that unpacks images: bundles
// have their objects in place of an image.
func (c Catalog) inline(ctx context.Context) (fs.FS, error) {
	config, err := declcfg.LoadFS(ctx, c.Files)
	if err != nil {
		return nil, fmt.Errorf("reading the catalog: %w", err)
	}
	for i := range config.Bundles {
		bundle := &config.Bundles[i]
		files, ok := c.Bundles[bundle.Image]
		if !ok {
			return nil, fmt.Errorf("bundle %q of the catalog: there is none of image %q", bundle.Name, bundle.Image)
		}
		objects, err := objectProperties(files)
		if err != nil {
			return nil, fmt.Errorf("bundle %q: %w", bundle.Name, err)
		}
		bundle.Image = ""
		bundle.Properties = append(slices.DeleteFunc(bundle.Properties, func(p property.Property) bool {
			return p.Type == property.TypeCSVMetadata || p.Type == property.TypeBundleObject
		}), objects...)
	}
	return written(config)
}

// objectProperties has a property for each object of a bundle.
func objectProperties(files fs.FS) ([]property.Property, error) {
	names, err := fs.Glob(files, "manifests/*")
	if err != nil {
		return nil, err
	}
	var properties []property.Property
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		err = eachDocument(text, func(object map[string]any) error {
			encoded, err := json.Marshal(object)
			properties = append(properties, property.MustBuildBundleObject(encoded))
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return properties, nil
}

// eachDocument reads the documents of a manifest that are not empty.
func eachDocument(manifest []byte, read func(map[string]any) error) error {
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for {
		var document map[string]any
		err := documents.Decode(&document)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err == nil && document != nil:
			err = read(document)
		}
		if err != nil {
			return fmt.Errorf("reading a manifest: %w", err)
		}
	}
}

func written(config *declcfg.DeclarativeConfig) (fs.FS, error) {
	var text bytes.Buffer
	if err := declcfg.WriteJSON(*config, &text); err != nil {
		return nil, fmt.Errorf("writing the catalog: %w", err)
	}
	return fstest.MapFS{"catalog.json": &fstest.MapFile{Data: text.Bytes()}}, nil
}

// server serves one catalog. Its socket is open as long as classic OLM is, so the address
// stays when the catalog changes.
type server struct {
	socket  *net.TCPListener
	process *environment.Process // nil before the first start
}

// Serve has a CatalogSource in the namespace of classic OLM, one that is there included,
// offer a catalog for all namespaces, and nothing else from now on.
func (o *OLM) Serve(ctx context.Context, name string, catalog Catalog) error {
	files, err := catalog.inline(ctx)
	if err != nil {
		return err
	}
	address, err := o.serve(name, files)
	if err != nil {
		return fmt.Errorf("serving catalog %q: %w", name, err)
	}
	source := &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name}}
	_, err = controllerutil.CreateOrUpdate(ctx, o.Admin, source, func() error {
		source.Spec.SourceType, source.Spec.Address, source.Spec.Image = v1alpha1.SourceTypeGrpc, address, ""
		return nil
	})
	if err != nil {
		return fmt.Errorf("writing CatalogSource %q: %w", name, err)
	}
	return nil
}

// AwaitServing waits, as long as the context lasts, until classic OLM has read a catalog of
// [OLM.Serve].
func (o *OLM) AwaitServing(ctx context.Context, name string) error {
	return o.until(ctx, fmt.Sprintf("CatalogSource %q to be read", name), func(ctx context.Context) error {
		source := &v1alpha1.CatalogSource{}
		if err := o.Admin.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: name}, source); err != nil {
			return err
		}
		state := source.Status.GRPCConnectionState
		if state == nil || state.LastObservedState != "READY" || state.Address != source.Spec.Address {
			return fmt.Errorf("its connection is %+v", state)
		}
		return nil
	})
}

func (o *OLM) serve(name string, files fs.FS) (address string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	serving := o.catalogs[name]
	if serving == nil {
		listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // loopback
		if err != nil {
			return "", err
		}
		serving = &server{socket: listener.(*net.TCPListener)} //nolint:errcheck // of tcp it is
		o.catalogs[name] = serving
	}
	if err := serving.stop(); err != nil {
		return "", err
	}
	folder := path.Join(o.dir, name)
	if err := errors.Join(os.RemoveAll(folder), os.CopyFS(folder, files)); err != nil {
		return "", err
	}
	socket, err := serving.socket.File()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, socket.Close()) }()
	command := exec.Command(o.program, "serve", "--folder="+folder) //nolint:noctx,gosec // outlives the start; our own program
	command.Env = []string{"HOME=" + o.dir, "TMPDIR=" + o.dir}
	command.ExtraFiles = []*os.File{socket}
	serving.process, err = environment.StartProcess("catalog "+name, filepath.Join(o.options.Logs, "catalog-"+name+".log"), command)
	return serving.socket.Addr().String(), err
}

func (s *server) stop() error {
	if s.process == nil {
		return nil
	}
	return s.process.Kill()
}

func (s *server) end() error { return errors.Join(s.stop(), s.socket.Close()) }
