#if Cloud
import Foundation
import HTTPTypes
import Hummingbird
import KeepsakeReplication
import NIOCore

/// What stands between the network and the routes: every budget that requests share, and what is over it.
///
/// A request passes its stages in one order (its body arrives, is decoded, waits for what it asked for, and its
/// response is read), and holds a share of each stage's budget only during that stage. So no two requests ever wait for
/// each other.
final class ServerGate: Sendable {
  let refusals: RefusalLog
  let rates: RateBuckets
  let proxies: TrustedProxies
  let connections: ConnectionTable
  let heavyTurns: HeavyTurns
  /// Bytes of bodies and responses in memory, and in files.
  let memory: MemoryBudget
  let threads: WorkThreads
  let exports = Allotment(ServerLimits.concurrentExports)
  private let folder: URL

  /// - Parameters:
  ///   - folder: Where files for bodies and responses are created. They have no names.
  ///   - connections: The most open connections.
  init(
    folder: URL, connections: Int, proxies: [AddressRange] = [], rates: RateLimits = RateLimits(),
    memory: MemoryBudget = MemoryBudget(), log: RefusalLog, clock: @escaping @Sendable () -> Int64
  ) {
    self.folder = folder
    self.memory = memory
    refusals = log
    self.rates = RateBuckets(rates, refusals: refusals, clock: clock)
    self.proxies = TrustedProxies(proxies)
    self.connections = ConnectionTable(
      limit: connections, perAddress: max(ServerLimits.leastConnectionsPerAddress, connections / 4))
    heavyTurns = HeavyTurns(clock: clock)
    threads = WorkThreads(
      running: ProcessInfo.processInfo.activeProcessorCount, waiting: ServerLimits.waitingMessages)
  }

  /// Returns the address of the client that sent `request`.
  func client(of request: Request, _ context: CloudContext) -> PeerAddress {
    proxies.client(peer: context.peer, headers: request.headers)
  }

  /// Returns the address for which a connection of `peer` is counted; nil for one that more than one client is behind.
  func counted(_ peer: PeerAddress) -> PeerAddress? { peer.isLoopback || proxies.trusts(peer) ? nil : peer }

  // MARK: Bodies

  /// A body that has arrived as a whole.
  private enum Body: Sendable {
    case memory(Data, Allotment.Share)
    case file(SpoolFile, count: Int)

    var count: Int {
      switch self {
      case .memory(let data, _): data.count
      case .file(_, let count): count
      }
    }

    /// Blocks if it is a file.
    func data() throws -> Data {
      switch self {
      case .memory(let data, _): data
      case .file(let file, let count): try file.read(at: 0, count: count)
      }
    }
  }

  /// Receives a body of at most `limit` bytes: a small one in memory, as long as there is room, and any other in a
  /// file.
  ///
  /// - Parameter look: Called with each part as it arrives; what it throws ends the request.
  private func receive(
    _ request: Request, limit: Int, _ look: (ByteBuffer) throws -> Void = { _ in }
  ) async throws -> Body {
    let declared = request.headers[.contentLength].flatMap { Int($0) }
    if let declared, declared > limit {
      throw APIError(
        .contentTooLarge, .tooLarge, "The body has \(declared) bytes; this request can have at most \(limit).")
    }
    var collected = ByteBuffer()
    var share = memory.bodies.share(0)
    var file: SpoolFile?
    var count = 0
    for try await part in request.body {
      guard part.readableBytes <= limit - count else {
        throw APIError(.contentTooLarge, .tooLarge, "The body is larger than \(limit) bytes.")
      }
      try look(part)
      if file == nil {
        if count + part.readableBytes <= ServerLimits.bodyMemoryBytes, share?.grow(by: part.readableBytes) == true {
          collected.writeImmutableBuffer(part)
        } else {
          let spool = try await spool()
          if collected.readableBytes > 0 { try await spool.write(collected, at: 0) }
          (file, share, collected) = (spool, nil, ByteBuffer())
        }
      }
      if let file { try await file.write(part, at: count) }
      count += part.readableBytes
    }
    guard declared == nil || declared == count else {
      throw APIError(.badRequest, .badRequest, "The body ended early.")
    }
    if let file { return .file(file, count: count) }
    guard let share else { throw overMemory("bodies") }
    return .memory(Data(collected.readableBytesView), share)
  }

  private func spool() async throws -> SpoolFile {
    do {
      return try await SpoolFile.create(in: folder, of: memory.files)
    } catch let error as APIError {
      throw refusals.count(.memory, as: error)
    }
  }

  private func overMemory(_ what: String) -> APIError {
    refusals.count(.memory, as: APIError.overBudget(what))
  }

  /// Receives a body and passes it to `use`, which may not keep it.
  func withBody<Result>(of request: Request, limit: Int, _ use: (Data) async throws -> Result) async throws -> Result {
    let body = try await receive(request, limit: limit)
    // Its share of the memory is taken until the end.
    defer { withExtendedLifetime(body) {} }
    guard case .file = body else { return try await use(body.data()) }
    guard let share = await memory.decoding.wait(for: body.count) else { throw overMemory("bodies") }
    defer { share.end() }
    return try await use(try await threads.run { try body.data() })
  }

  /// Receives a body and decodes it: a small one at once, a larger one on the threads for that, when there is memory
  /// for what it will take. Throws an `APIError` that states what is wrong with it.
  ///
  /// - Parameters:
  ///   - lengthBytes: How many bytes come before the body's JSON, with its length.
  ///   - work: What the request may take: paid for its bytes before they arrive, and for decoding before that begins.
  func decode<Value: Sendable>(
    _ request: Request, limit: Int, lengthBytes: Int = 0, work: RequestWork? = nil,
    _ decode: @escaping @Sendable (Data) throws -> Value
  ) async throws -> Value {
    var scan = JSONScan(limit: ServerLimits.jsonTokens, deepest: ServerLimits.jsonDepth, lengthBytes: lengthBytes)
    var count = 0
    let declared = request.headers[.contentLength].flatMap { Int($0) } ?? 0
    try work?.reach(min(max(declared, 0), limit) / ServerLimits.bytesPerWork)
    let body = try await receive(request, limit: limit) { part in
      count += part.readableBytes
      try work?.reach(count / ServerLimits.bytesPerWork)
      part.withUnsafeReadableBytes { scan.read($0) }
      try check(scan)
    }
    defer { withExtendedLifetime(body) {} }
    try work?.reach(scan.tokens / ServerLimits.tokensPerWork)
    if case .memory(let data, _) = body, data.count <= ServerLimits.decodedAtOnceBytes {
      return try Request.reading(data, decode)
    }
    guard let share = await memory.decoding.wait(for: 2 * count + scan.decodingBytes) else {
      throw overMemory("decoding")
    }
    defer { share.end() }
    return try await threads.run { try Request.reading(try body.data(), decode) }
  }

  private func check(_ scan: JSONScan) throws {
    guard scan.isBeyond else { return }
    let isDeep = scan.depth > ServerLimits.jsonDepth
    var error = APIError(
      .badRequest, .badJSON,
      isDeep
        ? "The body's JSON is nested deeper than \(ServerLimits.jsonDepth) levels."
        : "The body's JSON has more than \(ServerLimits.jsonTokens) values and keys.")
    error.limit = Int64(isDeep ? ServerLimits.jsonDepth : ServerLimits.jsonTokens)
    throw refusals.count(.tooManyTokens, as: error)
  }

  // MARK: Responses

  /// Encodes a response and prepares it to be sent: small ones at once, larger ones on the threads for that.
  ///
  /// - Parameter expected: About how many bytes it will have.
  func response(
    expecting expected: Int, type: String, _ encode: @escaping @Sendable () throws -> Data
  ) async throws -> Response {
    let data =
      expected <= ServerLimits.decodedAtOnceBytes ? try encode() : try await threads.run { try encode() }
    return Response(status: .ok, headers: [.contentType: type], body: try await responseBody(data))
  }

  /// Returns the body of a response: in memory if it is small, or if there is room for it; else in a file, from which
  /// it is sent as fast as the client reads.
  func responseBody(_ data: Data) async throws -> ResponseBody {
    let count = data.count
    if count <= ServerLimits.responsePartBytes { return ResponseBody(byteBuffer: ByteBuffer(bytes: data)) }
    if count <= ServerLimits.responseMemoryBytes, let share = memory.responses.share(count) {
      return ResponseBody(contentLength: count) { writer in
        defer { share.end() }
        var rest = ByteBuffer(bytes: data)
        while let part = rest.readSlice(length: min(rest.readableBytes, ServerLimits.responsePartBytes)),
          part.readableBytes > 0
        {
          try await writer.write(part)
        }
        try await writer.finish(nil)
      }
    }
    let file = try await spool()
    try await file.write(ByteBuffer(bytes: data), at: 0)
    return ResponseBody(contentLength: count) { writer in
      var sent = 0
      while sent < count {
        let part = min(count - sent, ServerLimits.responsePartBytes)
        try await writer.write(try await file.part(at: sent, count: part))
        sent += part
      }
      try await writer.finish(nil)
    }
  }
}

/// The memory and the disk that bodies and responses share, each stage its part.
struct MemoryBudget: Sendable {
  /// Bodies that arrive.
  var bodies = Allotment(ServerLimits.bodiesBytes)
  /// Bodies being decoded, with what becomes of them.
  var decoding = Allotment(ServerLimits.decodingBytes, waiters: ServerLimits.waitingMessages)
  /// Responses being put together and encoded.
  var building = Allotment(ServerLimits.buildingBytes, waiters: ServerLimits.waitingMessages)
  /// Responses being sent.
  var responses = Allotment(ServerLimits.responsesBytes)
  /// Bodies and responses in files.
  var files = Allotment(ServerLimits.spooledBytes)
}
#endif
