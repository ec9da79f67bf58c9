#if Cloud
import Foundation
import Hummingbird
import KeepsakeReplication

/// One request of the studio that was admitted: who asks, about whom, and what goes into the audit log.
struct AdminCall: Sendable {
  var request: Request
  var context: CloudContext
  var key: AdminKey
  var storage: AuditedStorage
  /// The player of the address; nil for a route about none.
  var place: AdminPlace?

  /// The player of the address.
  var player: AdminPlace {
    get throws {
      guard let place else { throw APIError.playerUnknown }
      return place
    }
  }

  func version(_ name: String = "version") throws -> VersionID { try identifier(name, "a version's") }
  func device() throws -> DeviceID { try identifier("device", "a device's") }

  func identity() throws -> ContentHash {
    guard let id = context.parameters.get("identity").flatMap({ ContentHash($0) }) else {
      throw APIError(
        .badRequest, .badRequest, "The address has to contain an identity's id of 64 hexadecimal digits.")
    }
    return id
  }

  private func identifier<Kind>(_ name: String, _ what: String) throws -> Identifier<Kind> {
    let text = context.parameters.get(name) ?? request.uri.queryParameters[Substring(name)].map(String.init)
    guard let id = text.flatMap({ Identifier<Kind>($0) }) else {
      throw APIError(.badRequest, .badRequest, "The address has to contain \(what) id of 32 hexadecimal digits.")
    }
    return id
  }

  /// A parameter of the query, such as `slot`.
  func query(_ name: String) -> String? { request.uri.queryParameters[Substring(name)].map(String.init) }

  func number(_ name: String) throws -> UInt64? {
    guard let text = query(name) else { return nil }
    guard let number = UInt64(text), number <= Cursor.maximumSeq else {
      throw APIError(.badRequest, .badRequest, "The parameter \(name) has to be a number.")
    }
    return number
  }

  /// Notes what the act is about.
  func about(_ id: Identifier<some Any>) { storage.entry.subject = AuditEntry.hash(id) }
  func note(_ name: String, _ value: String) { storage.entry.details[name] = value }

  /// The reason that a person gives for an act, for the audit log.
  func reason(_ text: String) throws -> String {
    guard Ban.reasonBytes.contains(text.utf8.count), !text.unicodeScalars.contains(where: { $0.value < 0x20 }) else {
      throw APIError(
        .badRequest, .badRequest,
        "The reason has to have \(Ban.reasonBytes.lowerBound) to \(Ban.reasonBytes.upperBound) bytes, on one line.")
    }
    note("reason", text)
    return text
  }
}

extension APIError {
  static let playerUnknown = APIError(
    .notFound, .playerUnknown, "There is no such player, or none of the player's devices is left.")
}
#endif
