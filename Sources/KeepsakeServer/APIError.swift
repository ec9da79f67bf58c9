#if Cloud
import Foundation
import HTTPTypes
import Hummingbird
import KeepsakeReplication

/// An error response: a status for machines in between, a code for Keepsake's clients, a sentence for people.
///
/// In JSON: `{"error": {"code": "...", "message": "..."}}`.
struct APIError: Error, Sendable {
  enum Code: String, Sendable, CaseIterable {
    case badRequest = "bad_request"
    case badJSON = "bad_json"
    case badExchange = "bad_exchange"
    case unsupportedProtocol = "unsupported_protocol"
    case unauthorized
    case tokenExpired = "token_expired"
    case tokenSuperseded = "token_superseded"
    case appRevoked = "app_revoked"
    case badAppKey = "bad_app_key"
    case notEntitled = "not_entitled"
    case readOnly = "read_only"
    case retired
    case banned
    case scopeMissing = "scope_missing"
    case notFound = "not_found"
    case contentMissing = "content_missing"
    case versionUnknown = "version_unknown"
    case notReadable = "not_readable"
    case baseMissing = "base_missing"
    case codeUnknown = "code_unknown"
    case issuerUnknown = "issuer_unknown"
    case identityRefused = "identity_refused"
    case identityUnavailable = "identity_unavailable"
    case identityUnknown = "identity_unknown"
    case identityTaken = "identity_taken"
    case tooManyIdentities = "too_many_identities"
    case playerUnknown = "player_unknown"
    case playerMoved = "player_moved"
    case badOrder = "bad_order"
    case orderConflict = "order_conflict"
    case tooMuch = "too_much"
    case purchaseUnknown = "purchase_unknown"
    case purchaseForgotten = "purchase_forgotten"
    case notCharged = "not_charged"
    case notPurchase = "not_purchase"
    case receiptUsed = "receipt_used"
    case methodNotAllowed = "method_not_allowed"
    case tooLarge = "too_large"
    case badRange = "bad_range"
    case wrongOffset = "wrong_offset"
    case frameMismatch = "frame_mismatch"
    case superseded
    case encodingRefused = "encoding_refused"
    case tooManyGuesses = "too_many_guesses"
    case tooManyStreams = "too_many_streams"
    case tooManyUploads = "too_many_uploads"
    case tooManyRequests = "too_many_requests"
    case tooMuchWork = "too_much_work"
    case busy
    case storageFull = "storage_full"
    case quota
    case server
  }
  var status: HTTPResponse.Status
  var code: Code
  var message: String
  var retryAfterSeconds: Int?
  /// How many bytes of an upload have arrived.
  var received: Int?
  /// The methods that an address has, with the code `method_not_allowed`.
  var allowed: String?
  /// Set with the code `quota`.
  var quota: QuotaShortage?
  /// The limit that the request exceeds, and how many it has.
  var limit: Int64?
  var found: Int64?
  /// Set with the code `banned`.
  var reason: String?
  /// Of an admitted request of the studio: the id under which the audit log has it.
  var auditedRequest: String?
  /// Whether a limit has counted and logged it as a refusal.
  var isCounted = false

  init(_ status: HTTPResponse.Status, _ code: Code, _ message: String, retryAfterSeconds: Int? = nil) {
    self.status = status
    self.code = code
    self.message = message
    self.retryAfterSeconds = retryAfterSeconds
  }

  /// A method that an address doesn't have.
  ///
  /// - Parameter methods: Those that it has.
  static func method(_ methods: [String]) -> Self {
    let allowed = methods.joined(separator: ", ")
    var error = Self(.methodNotAllowed, .methodNotAllowed, "This address has only these methods: \(allowed).")
    error.allowed = allowed
    return error
  }

  /// A part that doesn't continue from what has arrived.
  static func wrongOffset(received: Int) -> Self {
    var error = Self(.conflict, .wrongOffset, "The server has \(received) bytes of this upload: continue from there.")
    error.received = received
    return error
  }

  /// The device was removed, or everything of its player was deleted.
  static let retired = Self(
    .forbidden, .retired,
    """
    This device was removed from the player's devices, or the player's data were deleted. The data on the device \
    itself are kept.
    """)

  /// A recovery code that another player has, which doesn't happen by chance.
  static let codeTaken = Self(.badRequest, .badRequest, "This code can't be used: make another one.")

  /// The token is good for its renewal only.
  static let tokenExpired = Self(
    .unauthorized, .tokenExpired,
    """
    The device's token is too old. A current release of the game gets a new one by itself, from POST /v1/token; the \
    data on the device are kept.
    """)

  /// The device has used a later token, so this one may be a stolen copy.
  static let tokenSuperseded = Self(
    .unauthorized, .tokenSuperseded,
    """
    The token is too old, and this device has used a newer one since: join the player again with a pairing code from \
    another device.
    """)

  /// The app key with which the device registered isn't accepted any more.
  static let appRevoked = Self(
    .unauthorized, .appRevoked,
    """
    The app key with which this device registered was revoked: with an update of the game that has a current key, the \
    device gets a new token from POST /v1/token. The data on the device are kept.
    """)

  /// The game may not use the shared container: whether there is one isn't said.
  static let notEntitled = Self(
    .forbidden, .notEntitled,
    """
    This game may not use this shared container. The data on the device are kept, and the game's studio decides which \
    games may use it.
    """)

  /// The game may only read the shared container.
  static let readOnly = Self(
    .forbidden, .readOnly,
    "This game may only read this shared container: nothing there is changed for it.")

  init(_ refusal: AppKeys.Refusal) {
    switch refusal {
    case .appRevoked: self = .appRevoked
    case .notEntitled: self = .notEntitled
    }
  }

  static let otherAppsCode = Self(
    .forbidden, .badAppKey, "The recovery code is of a game with another app key, which is still accepted.")

  static let otherApp = Self(
    .forbidden, .badAppKey, "The token was issued to a device with another app key, which is still accepted.")

  /// The player has no room for it. The same request may succeed later; sending it in another form won't help.
  static func overQuota(_ shortage: QuotaShortage) -> Self {
    var error = Self(
      .contentTooLarge, .quota,
      """
      This player uses \(shortage.used) of \(shortage.limit) bytes here, and this needs \(shortage.needed) more: \
      delete saves to make room.
      """)
    error.quota = shortage
    return error
  }

  /// One request asks for more than any may. Nothing of it was read or written; smaller requests may be accepted.
  static func exceeds(_ what: String, count: Int, limit: Int) -> Self {
    var error = Self(
      .contentTooLarge, .tooMuchWork, "One request may have at most \(limit) \(what); this one has \(count).")
    (error.limit, error.found) = (Int64(limit), Int64(count))
    return error
  }

  /// A budget that all requests share is used up at present.
  static func overBudget(_ what: String) -> Self {
    Self(
      .serviceUnavailable, .busy, "The server has no room for more \(what); try again in a moment.",
      retryAfterSeconds: ServerLimits.busyRetrySeconds)
  }

  private struct Body: Encodable {
    struct Details: Encodable {
      var code: String
      var message: String
      var received: Int?
      var limit: Int64?
      var used: Int64?
      var needed: Int64?
      var found: Int64?
      var reason: String?
    }
    var error: Details
  }

  func response() throws -> Response {
    let body = Body(
      error: .init(
        code: code.rawValue, message: message, received: received, limit: quota?.limit ?? limit,
        used: quota?.used, needed: quota?.needed, found: found, reason: reason)
    )
    var response = try Response(json: body, status: status)
    if let allowed { response.headers[.allow] = allowed }
    if let retryAfterSeconds { response.headers[.retryAfter] = String(retryAfterSeconds) }
    if let auditedRequest { response.headers[.keepsakeRequest] = auditedRequest }
    return response
  }
}

extension Response {
  /// A response in JSON, with sorted keys.
  init(json value: some Encodable, status: HTTPResponse.Status = .ok) throws {
    self.init(
      status: status, headers: [.contentType: "application/json"],
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: try Self.json(value))))
  }

  /// Encodes a value as JSON, with sorted keys.
  static func json(_ value: some Encodable) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return try encoder.encode(value)
  }
}
#endif
