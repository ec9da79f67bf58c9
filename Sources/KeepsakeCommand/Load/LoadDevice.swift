#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeStore

/// A simulated device: it registers or joins a player, and then makes one request after the other until the end.
final class LoadDevice {
  /// A device's account with its server, from the response to registering or joining.
  struct Account: Decodable {
    var device: DeviceID
    var player: PlayerID
    var container: ContainerID
    var token: String
  }
  private struct Code: Decodable { var code: String }
  private struct Failure: Decodable {
    struct Details: Decodable { var code: String }
    var error: Details
  }
  /// Larger contents are uploaded before their version, as a game's device does.
  private static let inlineBytes = 256 << 10
  /// What a game's device asks for at once.
  private static let pageLimit = 500
  /// Different saves of each size: making more would measure this process.
  private static let variants = 16

  let plan: LoadPlan
  let clock: LoadClock
  let appKey: String
  let writer: WriterID
  var record = LoadRecord()
  private let connection: LoadConnection
  /// A player has one code at a time: of several devices, one makes them.
  private let mayPair: Bool
  private var random: SystemRandomNumberGenerator
  private(set) var account: Account?
  private var cursor = Cursor.start
  /// The newest version of each slot.
  private var heads: [String: VersionID] = [:]
  private var saved: UInt64 = 0

  init(_ plan: LoadPlan, number: Int, at address: LoadAddress, appKey: String, clock: LoadClock) {
    (self.plan, self.clock, self.appKey) = (plan, clock, appKey)
    mayPair = number % plan.perPlayer == 0
    connection = LoadConnection(address)
    writer = WriterID(UInt64(number + 1))
    random = SystemRandomNumberGenerator()
  }

  // MARK: Accounts

  /// Registers a new player.
  func register() throws(LoadError) {
    account = try measured(.register) { () throws(LoadError) in
      try answer(
        try connection.call(
          "POST", "/v1/devices", [("Keepsake-App-Key", appKey)], body: Data(#"{"name":"load"}"#.utf8)))
    }
  }

  /// Returns a code with which another device joins this one's player.
  func pairingCode() throws(LoadError) -> String {
    let code: Code = try answer(try connection.call("POST", "/v1/pairing", authorization, body: Data()))
    return code.code
  }

  func join(_ code: String) throws(LoadError) {
    account = try answer(
      try connection.call(
        "POST", "/v1/pairing/join", [("Keepsake-App-Key", appKey)],
        body: Data(#"{"code":"\#(code)","name":"load"}"#.utf8)))
  }

  private var authorization: [(String, String)] { [("Authorization", "Bearer \(account?.token ?? "")")] }

  // MARK: Requests

  /// Makes requests until the end.
  func run() {
    while !clock.isEnded {
      do throws(LoadError) {
        let choice = Double.random(in: 0..<1, using: &random)
        if choice < plan.empty {
          try exchange(.empty, ExchangeRequest(cursor: cursor, limit: Self.pageLimit))
        } else if choice < plan.empty + plan.pairings {
          if mayPair { try pairAnother() } else { try save() }
        } else if choice < plan.empty + plan.pairings + plan.catchUps {
          try catchUp()
        } else {
          try save()
        }
      } catch {
        record.fail(error.kind)
        // A server that refuses everything isn't asked as fast as possible.
        clock.pause(.milliseconds(100))
      }
      if plan.thinkMilliseconds > 0 {
        let pause = -log(Double.random(in: 0.000_1..<1, using: &random)) * plan.thinkMilliseconds
        clock.pause(.milliseconds(pause))
      }
    }
    connection.close()
  }

  private func save() throws(LoadError) {
    guard let size = plan.sizes.randomElement(using: &random) else { return }
    saved += 1
    let content = try LoadContents.content(size, variant: Int(saved) % Self.variants, device: writer)
    let slot = "slot \(saved % UInt64(LoadPlan.slots))"
    let id = VersionID(using: &random)
    let version = VersionRecord(
      id: id, slot: slot, covers: heads[slot].map { [$0] } ?? [], contents: [content.hash], length: content.length,
      savedAtMilliseconds: Int64(saved), writer: writer, provisional: false)
    let isInline = content.bytes.count <= Self.inlineBytes
    if !isInline { try upload(content) }
    try exchange(
      .save,
      ExchangeRequest(
        cursor: cursor, versions: [version], contents: isInline ? [content] : [], limit: Self.pageLimit))
    heads[slot] = id
  }

  private func upload(_ content: EncodedContent) throws(LoadError) {
    let headers = authorization + [("Keepsake-Length", "\(content.length)")]
    try measured(.upload) { () throws(LoadError) in
      try Self.check(try connection.call("PUT", "/v1/contents/\(content.hash)", headers, body: content.bytes))
    }
  }

  /// A device that pairs with this one's player, and fetches everything.
  private func pairAnother() throws(LoadError) {
    let account = account
    try measured(.pair) { () throws(LoadError) in
      let code = try pairingCode()
      try join(code)
    }
    // The new device is of no further use.
    self.account = account
  }

  /// Fetches everything, as a device does that has lost its data.
  private func catchUp() throws(LoadError) {
    let began = ContinuousClock.now
    var place = Cursor.start
    var hasMore = true
    while hasMore {
      let response = try send(ExchangeRequest(cursor: place, limit: Self.pageLimit))
      (place, hasMore) = (response.cursor, response.more)
    }
    note(.catchUp, began)
    cursor = place
  }

  private func exchange(_ action: LoadRecord.Action, _ request: ExchangeRequest) throws(LoadError) {
    let began = ContinuousClock.now
    let response = try send(request)
    note(action, began)
    switch response.outcome {
    case nil, .accepted: break
    case .missing: throw LoadError("missing contents")
    case .refused(let refusals): throw LoadError("refused: \(refusals.first?.reason.rawValue ?? "")")
    case .held: throw LoadError("held")
    }
    cursor = response.restart ? .start : response.cursor
  }

  private func send(_ request: ExchangeRequest) throws(LoadError) -> ExchangeResponse {
    let body: Data
    do {
      body = try ExchangeBody.encode(request)
    } catch {
      throw LoadError("request can't be encoded")
    }
    let headers =
      authorization + [("Content-Type", ExchangeBody.contentType), ("Accept", ExchangeBody.contentType)]
    let answer = try connection.call("POST", "/v1/exchange", headers, body: body)
    try Self.check(answer)
    do {
      return try ExchangeBody.decode(ExchangeResponse.self, from: answer.body)
    } catch {
      throw LoadError("response can't be decoded")
    }
  }

  // MARK: Answers

  private func answer<Value: Decodable>(_ response: LoadConnection.Response) throws(LoadError) -> Value {
    try Self.check(response)
    do {
      return try JSONDecoder().decode(Value.self, from: response.body)
    } catch {
      throw LoadError("response can't be decoded")
    }
  }

  /// Throws for an error response: its status and code.
  static func check(_ response: LoadConnection.Response) throws(LoadError) {
    guard !(200..<300).contains(response.status) else { return }
    let code = (try? JSONDecoder().decode(Failure.self, from: response.body))?.error.code
    throw LoadError("\(response.status)\(code.map { " \($0)" } ?? "")")
  }

  private func measured<Result>(
    _ action: LoadRecord.Action, _ body: () throws(LoadError) -> Result
  ) throws(LoadError) -> Result {
    let began = ContinuousClock.now
    let result = try body()
    note(action, began)
    return result
  }

  private func note(_ action: LoadRecord.Action, _ began: ContinuousClock.Instant) {
    let now = ContinuousClock.now
    let milliseconds = (now - began) / .milliseconds(1)
    if action == .register {
      record.add(action, second: 0, milliseconds: milliseconds)
    } else if let second = clock.seconds(at: now) {
      record.add(action, second: second, milliseconds: milliseconds)
    }
  }
}

/// The contents of simulated saves: bytes that don't compress, so that the size of a save is what is sent.
enum LoadContents {
  /// By SplitMix64, because the system's random numbers take a call each.
  private static let pattern: Data = {
    var state = UInt64.random(in: .min ... .max)
    var bytes = Data(capacity: 1 << 20)
    for _ in 0..<(1 << 20) / 8 {
      state &+= 0x9E37_79B9_7F4A_7C15
      var word = state
      word = (word ^ word >> 30) &* 0xBF58_476D_1CE4_E5B9
      word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
      word ^= word >> 31
      withUnsafeBytes(of: word) { bytes.append(contentsOf: $0) }
    }
    return bytes
  }()

  /// Makes what all contents are made of, so that nobody waits for it during a measurement.
  static func prepare() { _ = pattern }

  /// Returns a content of this many plain bytes, different for each variant and device.
  static func content(_ size: Int, variant: Int, device: WriterID) throws(LoadError) -> EncodedContent {
    var plain = Data(capacity: size)
    while plain.count < size { plain.append(pattern.prefix(size - plain.count)) }
    let mark = Data("\(device) \(variant) \(UInt64.random(in: .min ... .max))".utf8)
    plain.replaceSubrange(0..<min(mark.count, plain.count), with: mark.prefix(plain.count))
    do {
      return EncodedContent(
        hash: ContentHash(of: plain), length: size, base: nil, bytes: try Zstd.compress(plain, level: 1))
    } catch {
      throw LoadError("save can't be compressed")
    }
  }
}
#endif
