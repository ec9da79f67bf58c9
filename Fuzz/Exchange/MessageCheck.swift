package import Foundation
import KeepsakeReplication

/// What is checked of each altered message, by the fuzzer and by the tests: it is decoded or refused in a typed way,
/// what was decoded is encoded and decoded again to the same in both forms, and a cloud answers it or refuses it.
package struct MessageCheck: Sendable {
  /// How a message is written.
  package enum Form: String, CaseIterable, Sendable {
    case exchangeJSON, exchangeBody

    /// The ending of recorded messages of this form.
    package var fileExtension: String { self == .exchangeJSON ? "json" : "exchange" }
  }

  /// What an input claims to be, by its first byte.
  package enum Kind: UInt8, CaseIterable, Sendable {
    case request, response, event

    /// The kind of a recorded message; nil if the file's name begins with none.
    package init?(named name: String) {
      let known = Self.allCases.first { name.hasPrefix("\($0)") }
      guard let known else { return nil }
      self = known
    }
  }

  /// What must not happen.
  package struct Finding: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
  }

  /// What a server counts before it decodes a text.
  package struct Scan: Sendable {
    package var isAdmitted: Bool
    package var decodingBytes: Int

    package init(isAdmitted: Bool, decodingBytes: Int) {
      self.isAdmitted = isAdmitted
      self.decodingBytes = decodingBytes
    }
  }

  /// What decoding may take beside what was counted: tables of the decoder that don't grow with the text.
  private static let bytesForAny = 1 << 16

  private let form: Form
  private let scan: @Sendable (Data) -> Scan
  private let measure: @Sendable (() -> Void) -> Int

  /// - Parameters:
  ///   - scan: Counts what a server counts.
  ///   - measure: Returns the most bytes of memory that lived at once in the closure, or 0 if it can't tell.
  package init(
    _ form: Form, scan: @escaping @Sendable (Data) -> Scan,
    measure: @escaping @Sendable (() -> Void) -> Int = { body in
      body()
      return 0
    }
  ) {
    self.form = form
    self.scan = scan
    self.measure = measure
  }

  /// Checks one input: a byte for its kind, then the message.
  ///
  /// - Returns: Whether it was decoded.
  /// - Throws: A ``Finding``.
  package func run(_ input: Data) throws -> Bool {
    guard let first = input.first, let kind = Kind(rawValue: first % UInt8(Kind.allCases.count)) else { return false }
    let body = Data(input.dropFirst())
    switch kind {
    case .request:
      guard let request = try again(ExchangeRequest.self, body) else { return false }
      try answer(request)
    case .response:
      guard try again(ExchangeResponse.self, body) != nil else { return false }
    case .event:
      guard try again(CloudEvent.self, body) != nil else { return false }
    }
    return true
  }

  /// Decodes a message as a server does, and checks that it stays the same in both forms.
  private func again<Message: Codable & Equatable>(_ type: Message.Type, _ body: Data) throws -> Message? {
    let counted = scan(form == .exchangeJSON ? body : ExchangeBody.json(of: body))
    guard counted.isAdmitted else { return nil }
    var result: Result<Message, any Error>?
    let peak = measure { result = Result { try decode(type, body, form) } }
    guard peak <= 2 * body.count + counted.decodingBytes + Self.bytesForAny else {
      throw Finding("decoding \(body.count) bytes took \(peak), and \(counted.decodingBytes) were counted")
    }
    let message: Message
    switch result {
    case .success(let decoded): message = decoded
    case .failure(let error) where error is DecodingError || error is ExchangeError: return nil
    case .failure(let error): throw Finding("decoding threw \(error)")
    case nil: throw Finding("nothing was decoded")
    }
    try survives(message)
    return message
  }

  private func survives<Message: Codable & Equatable>(_ message: Message) throws {
    for form in Form.allCases {
      do {
        guard try decode(Message.self, encode(message, form), form) == message else {
          throw Finding("a message that was encoded (\(form)) is decoded as another one")
        }
      } catch let error where !(error is Finding) {
        throw Finding("a decoded message can't be encoded (\(form)) and decoded again: \(error)")
      }
    }
  }

  /// What a cloud says to a request that could be decoded.
  private func answer(_ request: ExchangeRequest) throws {
    let device = DeviceID(high: 0, low: 1)
    do {
      try CloudAcceptance.check(request)
      guard request.cells.count + request.versions.count <= ExchangeRules.maximumChanges, request.work >= 0 else {
        throw Finding("a request with too many changes is admitted")
      }
      _ = CloudAcceptance.largestResponse(to: request, behind: .max)
      var cloud = MemoryContainer(epoch: request.cursor.epoch)
      var random = SeededBits(state: 1)
      let response = try CloudAcceptance.exchange(request, from: device, now: 5, in: &cloud, using: &random)
      guard response.changes.count <= max(0, request.limit) else {
        throw Finding("a response has \(response.changes.count) changes, and \(request.limit) were asked for")
      }
      try survives(response)
    } catch is ExchangeError {
      return
    } catch let error where !(error is Finding) {
      throw Finding("a cloud threw \(error)")
    }
  }

  private func decode<Message: Decodable>(_ type: Message.Type, _ body: Data, _ form: Form) throws -> Message {
    switch form {
    case .exchangeJSON: try JSONDecoder().decode(type, from: body)
    case .exchangeBody: try ExchangeBody.decode(type, from: body)
    }
  }

  private func encode(_ message: some Encodable, _ form: Form) throws -> Data {
    switch form {
    case .exchangeJSON: try JSONEncoder().encode(message)
    case .exchangeBody: try ExchangeBody.encode(message)
    }
  }
}
