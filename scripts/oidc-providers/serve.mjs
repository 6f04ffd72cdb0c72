// Two identity providers on loopback, for tests: oidc-provider, which is certified, and
// oauth2-mock-server, which signs any claims. Prints a line of environment variables for each
// and serves until it is killed.
import { createServer } from 'node:http';
import { OAuth2Server } from 'oauth2-mock-server';
import Provider from 'oidc-provider';

const resource = 'https://assay.example.com';

// listen starts a server on a free port and returns its URL.
function listen(server) {
  return new Promise((done) => server.listen(0, '127.0.0.1', () => done(`http://127.0.0.1:${server.address().port}`)));
}

// oidcProvider has one client, any user with any password, and access tokens for one resource.
async function oidcProvider() {
  let handler;
  const server = createServer((req, res) => handler(req, res));
  const issuer = await listen(server);
  const provider = new Provider(issuer, {
    clients: [{
      client_id: 'app', client_secret: 'secret', redirect_uris: ['https://app.example.com/callback', 'https://app.example.com/sign-in/callback'],
      grant_types: ['authorization_code', 'refresh_token', 'client_credentials'],
    }],
    scopes: ['openid', 'assay.ask', 'assay.search'],
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => undefined,
        getResourceServerInfo: (ctx, indicator) => ({
          scope: 'assay.ask assay.search', audience: indicator, accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
    issueRefreshToken: () => true,
    pkce: { required: () => false },
    conformIdTokenClaims: false,
    extraTokenClaims: () => ({ roles: ['assay-reader'], groups: ['finance'] }),
    findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  });
  handler = provider.callback();
  console.log(`ASSAY_TEST_OIDC_PROVIDER=${issuer}`);
}

// mockServer signs the claims that a token request has in "claims", with its keys in turn. Its second
// server adds a key (/add?alg=ES256) and withdraws one from those that are published, with which
// tokens are still signed (/withdraw?kid=ID).
async function mockServer() {
  const mock = new OAuth2Server();
  await mock.issuer.keys.generate('RS256');
  await mock.start(0, '127.0.0.1');
  mock.service.on('beforeTokenSigning', (token, req) => {
    const change = JSON.parse(req.body.claims ?? '{}');
    Object.assign(token.payload, { aud: resource, roles: ['assay-reader'] }, change);
  });
  const store = mock.issuer.keys;
  const all = store.toJSON.bind(store);
  const withdrawn = new Set();
  store.toJSON = (...args) => all(...args).filter((key) => !withdrawn.has(key.kid));
  const control = await listen(createServer(async (req, res) => {
    const url = new URL(req.url, 'http://127.0.0.1');
    if (url.pathname === '/add') {
      res.end((await store.generate(url.searchParams.get('alg'))).kid);
    } else if (url.pathname === '/withdraw') {
      withdrawn.add(url.searchParams.get('kid'));
      res.end();
    } else {
      res.writeHead(404).end();
    }
  }));
  console.log(`ASSAY_TEST_OAUTH2_MOCK=${mock.issuer.url}`);
  console.log(`ASSAY_TEST_OAUTH2_CONTROL=${control}`);
}

await oidcProvider();
await mockServer();
console.log('READY=1');
