package signatures_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-openapi/runtime"
	"github.com/sigstore/rekor/pkg/generated/models"
	"github.com/sigstore/rekor/pkg/types"
	"github.com/sigstore/sigstore-go/pkg/tlog"

	"github.com/clusterextensions/operator-controller/internal/testkit/signing"
)

// certificateLifetime is for how long Fulcio's certificates are valid.
const certificateLifetime = 10 * time.Minute

// service answers the requests of programs that sign: those to Fulcio and those to Rekor. It
// accepts every identity token.
type service struct {
	*signing.Sigstore
}

func (s service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v2/signingCert", answer(http.StatusOK, s.serveCertificate))
	mux.HandleFunc("POST /api/v1/log/entries", answer(http.StatusCreated, s.serveEntry))
	return mux
}

// answer writes what a function makes of a request as JSON.
func answer(status int, serve func(http.Header, *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		made, err := serve(w.Header(), request)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		data, err := json.Marshal(made)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(data)
	}
}

// newToken returns an identity token without a signature; subject is a URL.
func newToken(subject, issuer string) (string, error) {
	claims, err := json.Marshal(map[string]any{"iss": issuer, "sub": subject, "aud": "sigstore", "exp": time.Now().Add(time.Hour).Unix()})
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	return strings.Join([]string{encode([]byte(`{"alg":"RS256"}`)), encode(claims), encode([]byte("unsigned"))}, "."), nil
}

// serveCertificate is Fulcio.
func (s service) serveCertificate(_ http.Header, request *http.Request) (any, error) {
	parts := strings.Split(request.Header.Get("Authorization"), ".")
	if len(parts) != 3 {
		return nil, errors.New("there is no token")
	}
	var claims struct {
		Issuer  string `json:"iss"`
		Subject string `json:"sub"`
	}
	decoded, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(decoded, &claims); err != nil {
		return nil, err
	}
	var asked struct {
		PublicKeyRequest struct {
			PublicKey struct {
				Content string `json:"content"`
			} `json:"publicKey"`
		} `json:"publicKeyRequest"`
	}
	if err := json.NewDecoder(request.Body).Decode(&asked); err != nil {
		return nil, err
	}
	block, _ := pem.Decode([]byte(asked.PublicKeyRequest.PublicKey.Content))
	if block == nil {
		return nil, errors.New("there is no public key")
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	subject, err := url.Parse(claims.Subject)
	if err != nil {
		return nil, err
	}
	certificate, err := s.Issue(key, subject, claims.Issuer, time.Now(), certificateLifetime)
	if err != nil {
		return nil, err
	}
	chain := []string{string(encode(certificate))}
	for _, authority := range s.Authorities() {
		chain = append(chain, string(encode(authority)))
	}
	return map[string]any{"signedCertificateEmbeddedSct": map[string]any{"chain": map[string]any{"certificates": chain}}}, nil
}

// serveEntry is Rekor.
func (s service) serveEntry(header http.Header, request *http.Request) (any, error) {
	body, err := canonical(request.Context(), request.Body)
	if err != nil {
		return nil, err
	}
	id, err := s.Log().RekorLogID()
	if err != nil {
		return nil, err
	}
	payload := tlog.RekorPayload{Body: base64.StdEncoding.EncodeToString(body), IntegratedTime: time.Now().Unix(), LogID: id}
	promise, err := s.Log().RekorSignPayload(payload)
	if err != nil {
		return nil, err
	}
	proof, err := s.Log().GetInclusionProof(body)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(append([]byte{0}, body...))
	name := hex.EncodeToString(sum[:])
	header.Set("ETag", name)
	header.Set("Location", "/api/v1/log/entries/"+name)
	return models.LogEntry{name: models.LogEntryAnon{
		Body: payload.Body, IntegratedTime: &payload.IntegratedTime, LogIndex: &payload.LogIndex, LogID: &payload.LogID,
		Verification: &models.LogEntryAnonVerification{InclusionProof: proof, SignedEntryTimestamp: promise},
	}}, nil
}

// canonical is an entry as Rekor keeps it.
func canonical(ctx context.Context, proposed io.Reader) ([]byte, error) {
	data, err := io.ReadAll(proposed)
	if err != nil {
		return nil, err
	}
	parsed, err := models.UnmarshalProposedEntry(bytes.NewReader(data), runtime.JSONConsumer())
	if err != nil {
		return nil, err
	}
	entry, err := types.CreateVersionedEntry(parsed)
	if err != nil {
		return nil, err
	}
	return types.CanonicalizeEntry(ctx, entry)
}
