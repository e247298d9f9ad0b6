package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/bundlecheck"
	"github.com/clusterextensions/operator-controller/internal/bundlepush"
	"github.com/clusterextensions/operator-controller/internal/bundlesource"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/realm"
)

const pushHelp = `Push a bundle or a Helm chart to a registry, and print the reference of the image by digest.

The argument is one of these:

  DIR      a bundle with manifests/ and metadata/, or a chart with Chart.yaml
  ARCHIVE  a chart as helm package writes it
  URL      the https address of such an archive
  NAME     with --repo, a chart of a Helm chart repository

With --repo, the command pushes the newest version of the chart that --version allows. As with
Helm, a prerelease is allowed only if --version names one, such as '>0-0'. If index.yaml of the
repository states a digest, the command compares it with the archive.

An archive is pushed unchanged, as helm push does. A chart in a folder is packaged first, without
the files that .helmignore names. If "bundle check" finds an error, nothing is pushed.

If there is a provenance file beside an archive, such as web-1.0.0.tgz.prov, the command compares
the digest in that file with the archive. It verifies the signature with the keys in --keyring.
With --verify, an archive without a provenance file is an error.

The command uses your credentials for the registry on this machine, those of docker login or
podman login. It takes credentials for a chart repository from its URL.`

// push is the command line of bundle push.
type push struct {
	target bundlepush.Target
	charts chartSource
}

func newPushCommand() *cobra.Command {
	o := push{}
	command := &cobra.Command{
		Use:   "push DIR|ARCHIVE|URL|NAME --registry REPOSITORY",
		Short: "Push a bundle or a Helm chart to a registry",
		Long:  pushHelp,
		Example: `  kubectl extension bundle push ./bundle --registry registry.example/team/my-operator --tag v1.0.0
  kubectl extension bundle push ./web-1.0.0.tgz --registry registry.example/team/web
  kubectl extension bundle push web --repo https://charts.example --version ^1.0 --registry registry.example/team/web
  kubectl extension bundle push https://charts.example/web-1.0.0.tgz --verify --keyring pubring.gpg --registry registry.example/team/web`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return o.run(command, args[0]) },
	}
	flags := command.Flags()
	flags.StringVar(&o.target.Repository, "registry", "", "Repository to push to: a registry and a path in it, without a tag. Required.")
	flags.StringVar(&o.target.Tag, "tag", "", "Tag of the image. If another image has the tag, it loses the tag. By default, a tag of the digest.")
	flags.BoolVar(&o.target.PlainHTTP, "plain-http", false, "The registry speaks no TLS. A registry on this machine needs neither TLS nor this flag.")
	flags.Var(&o.target.Realms, realm.Flag, realm.Usage)
	o.charts.bind(command)
	cli.NoFiles(command, "registry", "tag")
	return command
}

func (o *push) run(command *cobra.Command, from string) error {
	if o.target.Repository == "" {
		return program.Misuse(command, errors.New("--registry is required: it names the repository to push to"))
	}
	if err := o.target.Check(); err != nil {
		return program.Misuse(command, fmt.Errorf("--registry takes a registry and a path without a tag, and --tag a tag: %w", err))
	}
	if err := o.charts.check(from); err != nil {
		return program.Misuse(command, err)
	}
	if info, err := os.Stat(from); o.charts.isLocal(from) && err == nil && info.IsDir() {
		return o.pushFolder(command, from)
	}
	chart, err := o.charts.read(command, from)
	if err != nil {
		return cli.CatalogError(err) // which names --certificate-authority
	}
	return o.pushChart(command, chart)
}

// pushFolder pushes a bundle, or packages a chart and pushes that.
func (o *push) pushFolder(command *cobra.Command, folder string) error {
	if flag := o.charts.provenanceFlag(); flag != "" {
		return program.Misuse(command, fmt.Errorf("--%s is for archives, and %s is a folder, which has no provenance file", flag, folder))
	}
	files, err := bundlesource.Local(folder)
	if err != nil {
		return program.Misuse(command, err)
	}
	if !bundle.IsChart(files) {
		if err := refuse(command, files); err != nil {
			return err
		}
		return o.push(command, bundlepush.Content{Files: files})
	}
	archive, err := bundlepush.PackChart(files)
	if err != nil {
		return fmt.Errorf("%s: %w", folder, err)
	}
	return o.pushChart(command, packagedChart{from: folder, archive: archive})
}

// pushChart pushes an archive that the controller accepts. It unpacks the archive as the
// controller does.
func (o *push) pushChart(command *cobra.Command, chart packagedChart) error {
	err := image.ChartFiles(command.Context(), bytes.NewReader(chart.archive), func(files fs.FS) error {
		if !bundle.IsChart(files) {
			return fmt.Errorf("%s contains no Chart.yaml", chart.from)
		}
		if err := refuse(command, files); err != nil {
			return err
		}
		if err := chart.checkIdentity(files); err != nil {
			return err
		}
		return o.push(command, bundlepush.Content{Files: files, Archive: chart.archive, Provenance: chart.provenance})
	})
	if errors.Is(err, image.ErrContent) {
		return fmt.Errorf("nothing was pushed, because the controller refuses the chart in %s: %w", chart.from, err)
	}
	return err
}

// refuse prints the errors of a bundle, and returns an error if there is one.
func refuse(command *cobra.Command, files fs.FS) error {
	problems, err := bundlecheck.Check(files, bundlesource.Reader{}.Charts(command.Context()))
	if err != nil {
		return err
	}
	var wrong []bundlecheck.Problem
	for _, problem := range problems {
		if problem.Severity == bundlecheck.Error {
			wrong = append(wrong, problem)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	if err := cli.PrintLines(command.ErrOrStderr(), wrong); err != nil {
		return err
	}
	return fmt.Errorf("nothing was pushed: the bundle has %s", cli.Counted(len(wrong), "error"))
}

func (o *push) push(command *cobra.Command, content bundlepush.Content) error {
	ref, err := o.target.Push(command.Context(), content)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(command.OutOrStdout(), ref)
	return err
}
