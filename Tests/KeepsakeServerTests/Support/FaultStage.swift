#if Cloud && os(Linux)
import Foundation
import Keepsake
import Synchronization
import TestSupport
import Testing

/// A server, a phone whose transfers meet the fault, and a tablet of the same player at the other end.
final class FaultStage: Sendable {
  typealias Fault = FaultMatrix.Fault
  typealias Told = FaultMatrix.Told

  /// One kind of transfer, and the point at which it is held.
  struct Transfer: Sendable {
    enum Kind: Sendable {
      case smallExchange, checkpoint, inlineExchange, upload, download, events, registering, joining
    }
    var kind: Kind
    var name: String
    var request: String
    var point: WatchingProxy.Point
    var place: String
    var skipping = 0
    /// With a quota: how room is made for what is refused; nil if nothing is refused.
    var remedy: Remedy?
  }
  struct Row: Sendable {
    var cells: [String]
  }

  static let exchange = "POST /v1/exchange"
  static let contents = "/v1/contents/*"
  /// The small ones first: until a database's log is restarted, even the smallest write to it needs room on the disk.
  static let eachKind = [
    Transfer(
      kind: .smallExchange, name: "small exchange", request: exchange, point: .insideRequest,
      place: "half of the request"),
    Transfer(
      kind: .smallExchange, name: "small exchange", request: exchange, point: .beforeAnswer,
      place: "before the response"),
    Transfer(
      kind: .smallExchange, name: "small exchange", request: exchange, point: .insideAnswer(after: 40),
      place: "in the response"),
    Transfer(
      kind: .events, name: "event stream", request: "GET /v1/events", point: .insideAnswer(after: 60),
      place: "in an event"),
    Transfer(
      kind: .inlineExchange, name: "exchange with a save", request: exchange, point: .insideRequest,
      place: "half of the request"),
    Transfer(
      kind: .inlineExchange, name: "exchange with a save", request: exchange, point: .beforeAnswer,
      place: "before the response"),
    Transfer(
      kind: .upload, name: "upload in parts", request: "PUT " + contents, point: .insideRequest,
      place: "half of the second part",
      skipping: 1),
    Transfer(
      kind: .upload, name: "upload in parts", request: "PUT " + contents, point: .beforeAnswer,
      place: "before a part's response"),
    Transfer(
      kind: .download, name: "download", request: "GET " + contents, point: .insideAnswer(after: 200_000),
      place: "in the response"),
    Transfer(
      kind: .registering, name: "registering", request: "POST /v1/devices", point: .insideRequest,
      place: "half of the request"),
    Transfer(
      kind: .registering, name: "registering", request: "POST /v1/devices", point: .beforeAnswer,
      place: "before the response"),
    Transfer(
      kind: .joining, name: "joining", request: "POST /v1/pairing/join", point: .insideRequest,
      place: "half of the request"),
    Transfer(
      kind: .joining, name: "joining", request: "POST /v1/pairing/join", point: .beforeAnswer,
      place: "before the response"),
  ]
  private static let serverMebibytes = 96
  private static let deviceMebibytes = 96
  static let inlineBytes = 150_000
  static let largeBytes = 3_300_000

  let fault: Fault
  let transfers: [Transfer]
  /// The quota that the server gives each player.
  let quota: Mutex<Int64?>
  private let folder: URL
  private let data: URL
  private let port: Int
  private let server: Mutex<ServerProcess>
  let phone: PlayedDevice
  let tablet: PlayedDevice
  private let disk: DeviceDisk?
  private let number = Mutex(0)
  private let rows = Mutex<[Row]>([])
  private let guests = Mutex<[PlayedDevice]>([])

  static func set(_ fault: Fault, in folder: URL) async throws -> FaultStage {
    let data = folder.appendingPathComponent("server")
    let quota = fault == .quotaUsedUp ? firstQuota : nil
    let server = try await ServerProcess.start(
      data: data, diskMebibytes: fault == .serverDiskFull ? serverMebibytes : nil, quota: quota)
    let devices = folder.appendingPathComponent("devices")
    let disk = fault == .deviceDiskFull ? try await DeviceDisk(at: devices, mebibytes: deviceMebibytes) : nil
    let phone = try await PlayedDevice.playing("phone", in: devices, to: server.port)
    let tablet = try await PlayedDevice.playing("tablet", in: folder, to: server.port, with: phone)
    try await settle([phone, tablet])
    return FaultStage(fault, folder, data, server, phone, tablet, disk, quota)
  }

  private init(
    _ fault: Fault, _ folder: URL, _ data: URL, _ server: ServerProcess, _ phone: PlayedDevice, _ tablet: PlayedDevice,
    _ disk: DeviceDisk?,
    _ quota: Int64?
  ) {
    (self.fault, self.folder, self.data, self.phone, self.tablet, self.disk) = (
      fault, folder, data, phone, tablet, disk
    )
    transfers = fault == .quotaUsedUp ? Self.underQuota : Self.eachKind
    port = server.port
    self.server = Mutex(server)
    self.quota = Mutex(quota)
  }

  func end() async throws {
    try closeGuests()
    for device in [phone, tablet] { try device.close() }
    await server.withLock { $0 }.end(by: SIGTERM)
    try await disk?.unmount()
  }

  private func closeGuests() throws {
    let all = guests.withLock { guests in
      defer { guests = [] }
      return guests
    }
    for guest in all { try guest.close() }
  }

  func printRows() async {
    let lines = rows.withLock { rows in rows.map { "| " + $0.cells.joined(separator: " | ") + " |" } }
    print(lines.joined(separator: "\n"))
  }

  // MARK: The fault

  /// Causes the fault while the request is held.
  private func strike(_ transfer: Transfer, _ number: Int, _ trap: Trap, _ subject: PlayedDevice) async throws {
    switch fault {
    case .serverKilled:
      await server.withLock { $0 }.kill()
      trap.decide(.cut)
    case .connectionCut:
      subject.proxy.cutOff()
      trap.decide(.cut)
    case .serverDiskFull, .deviceDiskFull:
      try ballast.fill()
      trap.decide(.pass)
    case .quotaUsedUp:
      try await useUpQuota(in: transfer, number)
      trap.decide(.pass)
    }
  }

  /// Removes the cause of the fault.
  private func mend(_ transfer: Transfer, _ number: Int, _ subject: PlayedDevice) async throws {
    switch fault {
    case .serverKilled:
      let fresh = try await ServerProcess.start(data: data, port: port)
      server.withLock { $0 = fresh }
    case .connectionCut: subject.proxy.heal()
    case .serverDiskFull, .deviceDiskFull: try ballast.remove()
    case .quotaUsedUp: if let remedy = transfer.remedy { try await makeRoom(by: remedy, number) }
    }
  }

  /// The operator starts the server again with another quota.
  func raiseQuota(to bytes: Int64) async throws {
    await server.withLock { $0 }.end(by: SIGTERM)
    let fresh = try await ServerProcess.start(data: data, port: port, quota: bytes)
    server.withLock { $0 = fresh }
    quota.withLock { $0 = bytes }
  }

  private var ballast: Ballast {
    if let disk { return Ballast(file: disk.folder.appendingPathComponent("ballast")) }
    return Ballast(file: server.withLock { $0 }.file("ballast", on: data))
  }

  /// What the game must get.
  private func expected(_ transfer: Transfer) -> Told {
    let needsNoRoom = Told.nothing("it needs no room")
    let isOver: Bool
    if case .insideRequest = transfer.point { isOver = false } else { isOver = true }
    switch (fault, transfer.kind) {
    case (.serverKilled, .events), (.connectionCut, .events): return .notListening
    case (.serverKilled, .joining), (.connectionCut, .joining): return .thrown(nil)
    case (.serverKilled, _), (.connectionCut, _): return .waiting(nil)
    // What the server has stored already, and what it only reads, needs no room.
    case (.serverDiskFull, .download), (.serverDiskFull, .events): return needsNoRoom
    // More parts follow.
    case (.serverDiskFull, .upload): return .waiting("disk is full")
    case (.serverDiskFull, .joining): return isOver ? needsNoRoom : .thrown("disk is full")
    case (.serverDiskFull, _): return isOver ? needsNoRoom : .waiting("disk is full")
    case (.deviceDiskFull, .joining): return .thrown(nil)
    case (.deviceDiskFull, .events): return .storeFailedOrThere
    case (.deviceDiskFull, _): return .storeFailed
    case (.quotaUsedUp, .registering): return .nothing("a new player has room of their own")
    case (.quotaUsedUp, .smallExchange): return .nothing("values are always taken")
    case (.quotaUsedUp, _): return transfer.remedy == nil ? needsNoRoom : .refused
    }
  }

  // MARK: A cell of the matrix

  func play(_ transfer: Transfer) async throws {
    let number = number.withLock { number in
      number += 1
      return number
    }
    let what = "\(fault.rawValue), \(transfer.name), \(transfer.place)"
    do {
      let subject = try await prepare(transfer, number)
      let (trap, call) = try await begin(transfer, number, on: subject)
      let hit = try await trap.reached()
      try check(hit, transfer, what)
      let told = expected(transfer)
      try await strike(transfer, number, trap, subject)
      let words = try await tell(told, to: subject, call, transfer, number, what)
      try await mend(transfer, number, subject)
      let way = try await goOn(transfer, told, number, subject)
      try await finish(transfer, told, number, subject, what)
      try closeGuests()
      if fault == .quotaUsedUp { try await freeQuota() }
      let bytes = hit.bytesInAll.map { "\(hit.bytes) of \($0)" } ?? "\(hit.bytes)"
      rows.withLock {
        $0.append(Row(cells: [transfer.name, fault.rawValue, "\(transfer.place), \(bytes) bytes", words, way]))
      }
    } catch {
      throw NeverHappened("\(what): \(error)")
    }
  }

  private func prepare(_ transfer: Transfer, _ number: Int) async throws -> PlayedDevice {
    switch transfer.kind {
    case .registering, .joining:
      let place = disk?.folder ?? folder
      let guest = try PlayedDevice("guest \(number)", in: place, to: port)
      guests.withLock { $0.append(guest) }
      try await guest.game.progress.record(100 + number, for: ProgressKey("coins", default: 0, rule: .max)).value
      guard transfer.kind == .joining else { return guest }
      guest.connect()
      try await guest.game.cloud.sync()
      return guest
    default:
      try await settle([phone, tablet])
      return phone
    }
  }

  /// Begins the transfer, which is held at its point.
  private func begin(_ transfer: Transfer, _ number: Int, on subject: PlayedDevice) async throws -> (
    Trap, Task<Void, any Error>?
  ) {
    let code = transfer.kind == .joining ? try await tablet.game.cloud.pairingCode() : ""
    if transfer.kind == .events {
      // The stream to be held is the next one: the earlier one has ended, and the status shows that.
      try await subject.until("listening") { $0.game.cloud.status.isListening }
      subject.proxy.cutOff()
      try await subject.until("noticing the end of its stream") { !$0.game.cloud.status.isListening }
    }
    let trap = subject.proxy.hold(transfer.request, at: transfer.point, skipping: transfer.skipping)
    switch transfer.kind {
    case .smallExchange:
      try await subject.game.progress.record(number, for: ProgressKey("level", default: 0, rule: .max)).value
    case .checkpoint:
      let pending = try subject.game.checkpoint { checkpoint in
        try checkpoint.save(Chapter(number), to: Slot("small"))
        try checkpoint.record(number, for: ProgressKey("level", default: 0, rule: .max))
      }
      try await pending.value
    case .inlineExchange:
      try await subject.game.saves.save(Chapter(number, bytes: Self.inlineBytes), to: Slot("middle"))
    case .upload: try await subject.game.saves.save(Chapter(number, bytes: Self.largeBytes), to: Slot("large"))
    case .download: try await tablet.game.saves.save(Chapter(number, bytes: Self.largeBytes), to: Slot("large"))
    case .events:
      subject.proxy.heal()
      try await subject.until("listening again") { $0.game.cloud.status.isListening }
      try await tablet.game.progress.record(number, for: ProgressKey("level", default: 0, rule: .max)).value
    case .registering: subject.connect()
    case .joining: return (trap, Task { try await subject.game.cloud.join(code) })
    }
    return (trap, nil)
  }

  private func check(_ hit: Trap.Hit, _ transfer: Transfer, _ what: String) throws {
    #expect(hit.bytes > 0, "\(what): \(hit)")
    switch transfer.point {
    case .insideRequest: #expect(hit.bytesInAll.map { hit.bytes < $0 } == true, "\(what): \(hit)")
    case .beforeAnswer: #expect(hit.bytes == hit.bytesInAll, "\(what): \(hit)")
    case .insideAnswer: if let all = hit.bytesInAll { #expect(hit.bytes < all, "\(what): \(hit)") }
    }
  }

  /// Waits until the game gets what it should, and returns a description.
  private func tell(
    _ told: Told, to subject: PlayedDevice, _ call: Task<Void, any Error>?, _ transfer: Transfer, _ number: Int,
    _ what: String
  ) async throws -> String {
    func hasFailed(_ status: CloudStatus) -> Bool { if case .storeFailed = status.phase { true } else { false } }
    func reason(_ status: CloudStatus) -> String? {
      if case .waiting(let reason) = status.phase { reason } else { nil }
    }
    switch told {
    case .waiting(let part):
      try await subject.until("waiting, with a reason") {
        reason($0.game.cloud.status).map { reason in part.map { reason.contains($0) } ?? !reason.isEmpty } == true
      }
      return "waiting: " + (reason(subject.game.cloud.status) ?? "")
    case .storeFailed:
      try await subject.until("reporting the store's failure") { hasFailed($0.game.cloud.status) }
      return "storeFailed"
    case .storeFailedOrThere:
      let level = ProgressKey("level", default: 0, rule: .max)
      try await subject.until("reporting the store's failure") {
        hasFailed($0.game.cloud.status) || $0.game.progress[level] == number
      }
      return hasFailed(subject.game.cloud.status) ? "storeFailed" : "nothing: the log had room"
    case .notListening:
      try await subject.until("reporting that it isn't listening") { !$0.game.cloud.status.isListening }
      return "isListening is false"
    case .nothing(let reason):
      try await call?.value
      return "nothing: \(reason)"
    case .refused:
      return try await tellRefusal(to: subject, of: transfer, number, what)
    case .thrown(let part):
      do {
        try await call?.value
        Issue.record("\(what): the call didn't throw")
      } catch {
        #expect(part.map { "\(error)".contains($0) } ?? true, "\(what): \(error)")
        return "the call throws \((error as? GameDataError).map { "\($0.code)" } ?? "\(type(of: error))")"
      }
      return "?"
    }
  }

  /// Returns a description of how the transfer continues. The game makes no call except for joining again, which a
  /// player does.
  private func goOn(_ transfer: Transfer, _ told: Told, _ number: Int, _ subject: PlayedDevice) async throws -> String {
    if case .thrown = told {
      try await subject.game.cloud.join(try await tablet.game.cloud.pairingCode())
      return "joined with another code"
    }
    if case .waiting(let part) = told, part != nil, transfer.kind != .registering {
      subject.letMinutePass()
      return "by itself, after the minute that the server asks for"
    }
    switch (told, transfer.remedy) {
    case (.nothing, _): return "at once"
    case (_, .deletedElsewhere?): return "by itself with the next poll, after the tablet deleted a save"
    case (_, .deletedHere?): return "by itself at once, after the phone deleted a save"
    case (_, .raised(let bytes)?): return "by itself with the next poll, after the quota was raised to \(bytes)"
    case (_, nil): return "by itself"
    }
  }

  /// Waits until both sides have everything, and checks that.
  private func finish(
    _ transfer: Transfer, _ told: Told, _ number: Int, _ subject: PlayedDevice, _ what: String
  ) async throws {
    try await subject.until("going through") { device in
      // What continued immediately after a response may have met the full disk before there was room, and has to wait a
      // minute.
      if fault == .serverDiskFull, case .waiting(let reason) = device.game.cloud.status.phase,
        reason.contains("disk is full")
      {
        device.letMinutePass()
      }
      // Except by its own delete, a device learns only from a poll that there is room.
      if case .refused = told, transfer.remedy?.needsPoll == true, device.game.cloud.status.phase == .upToDate {
        device.letMinutePass()
      }
      return try device.isQuiet
    }
    if transfer.kind == .registering {
      #expect(subject.game.progress[ProgressKey("coins", default: 0, rule: .max)] == 100 + number, "\(what)")
      let other = try await PlayedDevice.playing("other \(number)", in: folder, to: port, with: subject)
      guests.withLock { $0.append(other) }
      try await settle([subject, other])
      #expect(other.game.progress[ProgressKey("coins", default: 0, rule: .max)] == 100 + number, "\(what)")
      return
    }
    let devices = transfer.kind == .joining ? [phone, tablet, subject] : [phone, tablet]
    let ends: [String: Int] =
      switch transfer.kind {
      case .smallExchange, .events: ["level": number]
      case .checkpoint: ["level": number, "small": number]
      case .inlineExchange: ["middle": number]
      case .upload, .download: ["large": number]
      case .registering, .joining: ["coins": 100 + number]
      }
    for device in devices {
      try await device.until("having all of it") { device in
        let seen = try Seen(on: device)
        return ends.allSatisfy { seen.progress[$0.key] == $0.value || seen.slots[$0.key] == [$0.value] }
      }
    }
    try await settle(devices)
    let seen = try devices.map { try Seen(on: $0) }
    for (device, own) in zip(devices, seen) { #expect(own == seen[0], "\(what): \(device.name) \(own), \(seen[0])") }
    // Each refusal emits one incident.
    let refusals = transfers.prefix(number).count { $0.remedy != nil }
    for device in devices {
      let incidents = device.game.incidents
      let isAsTold =
        incidents.count == (device === phone ? refusals : 0) && incidents.allSatisfy { $0.kind == .refusedByCloud }
      #expect(isAsTold, "\(what): \(device.name) \(incidents)")
    }
    // The results of the earlier cells are still there.
    let missing = lasting(upTo: number).filter {
      seen[0].progress[$0.key] != $0.value && seen[0].slots[$0.key] != [$0.value]
    }
    #expect(missing.isEmpty, "\(what): \(missing)")
  }

  /// What remains of the matrix cells up to this one.
  func lasting(upTo number: Int) -> [String: Int] {
    var left: [String: Int] = [:]
    for (index, transfer) in transfers.prefix(number).enumerated() {
      switch transfer.kind {
      case .smallExchange, .events: left["level"] = index + 1
      case .checkpoint: (left["level"], left["small"]) = (index + 1, index + 1)
      case .inlineExchange: left["middle"] = index + 1
      case .upload, .download: left["large"] = index + 1
      case .registering: break
      case .joining: left["coins"] = 100 + index + 1
      }
    }
    return left
  }
}
#endif
