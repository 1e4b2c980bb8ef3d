// A server between an API server and our controller that hands over each Job late, as a slow transformation would.

package job

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	restclient "k8s.io/client-go/rest"
)

const (
	jobsPath = "/apis/batch/v1/jobs"
	jobDelay = 2 * fastSyncJobBatchPeriod
)

type slowServer struct {
	server *httptest.Server
}

func startSlowServer(tb testing.TB, config *restclient.Config) *slowServer {
	tb.Helper()
	transport, err := restclient.TransportFor(config)
	if err != nil {
		tb.Fatal(err)
	}
	target, err := url.Parse("https://" + strings.TrimPrefix(config.Host, "https://"))
	if err != nil {
		tb.Fatal(err)
	}
	return &slowServer{httptest.NewServer(&httputil.ReverseProxy{
		FlushInterval: -1,
		Transport:     transport,
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(target)
			request.Out.Header.Del("Authorization") // the transport has its own
			if request.In.URL.Path == jobsPath {
				request.Out.Header.Set("Accept-Encoding", "identity")
			}
		},
		ModifyResponse: func(answer *http.Response) error {
			if answer.Request.URL.Path != jobsPath {
				return nil
			}
			if answer.Request.URL.Query().Get("watch") != "" {
				answer.Body = delayed(answer.Body)
				return nil
			}
			body, err := io.ReadAll(answer.Body)
			time.Sleep(jobDelay * time.Duration(bytes.Count(body, []byte(`"creationTimestamp"`))))
			answer.Body = io.NopCloser(bytes.NewReader(body))
			return err
		},
	})}
}

func (s *slowServer) url() string { return s.server.URL }

func (s *slowServer) close() {
	s.server.CloseClientConnections()
	s.server.Close()
}

// delayed hands over each event of a watch one delay after the one before.
func delayed(body io.ReadCloser) io.ReadCloser {
	out, in := io.Pipe()
	go func() {
		defer body.Close()
		lines := bufio.NewReader(body)
		for {
			line, err := lines.ReadBytes('\n')
			if len(line) > 0 && !bytes.HasPrefix(line, []byte(`{"type":"BOOKMARK"`)) {
				time.Sleep(jobDelay)
			}
			if _, writeErr := in.Write(line); writeErr != nil {
				return
			}
			if err != nil {
				in.CloseWithError(err)
				return
			}
		}
	}()
	return out
}
