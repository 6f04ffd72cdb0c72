package webhook_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/assay-rag/assay/webhook"
)

// A receiver verifies a message before it reads it.
func ExampleVerify() {
	header := http.Header{}
	header.Set(webhook.HeaderID, "msg_p5jXN8AQM9LWM0D4loKWxJek")
	header.Set(webhook.HeaderTimestamp, "1614265330")
	header.Set(webhook.HeaderSignature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	body, secret := []byte(`{"test": 2432232314}`), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

	sent := time.Unix(1614265330, 0)
	fmt.Println(webhook.Verify(header, body, sent.Add(time.Second), secret))
	fmt.Println(webhook.Verify(header, body, sent.Add(time.Hour), secret))
	fmt.Println(webhook.Verify(header, []byte(`{"test": 1}`), sent, secret))
	// Output:
	// <nil>
	// webhook: too old or too new
	// webhook: not a message signed by this secret
}
