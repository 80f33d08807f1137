"""Names of URL parameters in which providers put secrets; their values must not be stored."""

NAMES = [
    "access_token", "accessToken", "api-key", "api_key", "apikey", "appid", "auth", "auth_token",
    "authorization", "bearer", "client_id", "client_secret", "code", "credential", "credentials", "email",
    "hash", "hmac", "id_token", "jwt", "Key-Pair-Id", "key", "login", "mac", "otp", "p", "pass", "passwd",
    "password", "pin", "Policy", "private_key", "pwd", "refresh_token", "s", "secret", "session",
    "sessionid", "sid", "sig", "Signature", "signature", "token", "u", "uid", "user", "username",
    "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-Security-Token", "X-Amz-Signature",
    "X-Goog-Signature", "expires", "Expires", "se", "sp", "sv", "st",
]  # fmt: skip
