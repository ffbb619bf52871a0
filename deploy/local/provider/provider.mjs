// An OpenID Connect provider for the rehearsal on one machine, in place of a company's: any password is right.
//   node provider.mjs PORT CLIENT_SECRET_FILE REDIRECT_URI…
// A login is a word: `ada` of the group marin-operators, `bob` of marin-readers, anyone else of none.
import { readFileSync } from 'node:fs'
import { Provider } from 'oidc-provider'

const [port, secretFile, ...redirectUris] = process.argv.slice(2)
const groups = { ada: ['marin-operators'], bob: ['marin-readers'] }
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{
    client_id: 'marin',
    client_secret: readFileSync(secretFile, 'utf8').trim(),
    redirect_uris: redirectUris,
    grant_types: ['authorization_code'],
    response_types: ['code'],
  }],
  findAccount: (ctx, id) => ({
    accountId: id,
    async claims() { return { sub: id, email: `${id}@lab.example`, groups: groups[id] ?? [] } },
  }),
  claims: { openid: ['sub'], email: ['email'], groups: ['groups'] },
  scopes: ['openid', 'email', 'groups'],
  conformIdTokenClaims: false,
  pkce: { required: () => true },
})
provider.listen(Number(port), '127.0.0.1', () => console.log('ready'))
