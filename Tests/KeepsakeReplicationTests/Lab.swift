import Foundation
import KeepsakeReplication
import KeepsakeSimulation

/// A device under test: its storage and engine, and what the engine has returned so far.
struct LabDevice {
  var storage = SimulatedDevice()
  var engine: DeviceEngine
  var writer: WriterID
  var notifications: [EngineNotification] = []
  var pending: [EngineEffect] = []
  var exchanges = 0

  init(writer: UInt64, options: DeviceEngine.Options = .init()) throws {
    self.writer = WriterID(writer)
    engine = DeviceEngine(options: options)
  }
}

/// Devices and a cloud. The test itself delivers the requests and responses between them.
struct Lab {
  var random = SeededGenerator(seed: 99)
  var cloud = MemoryContainer(epoch: 1)
  var devices: [LabDevice] = []
  var now: Int64 = 1_000_000
  var requests: [ExchangeRequest] = []
  /// How many bytes the player may keep in the cloud; nil for no limit.
  var quota: Int64?
  /// Those of the container's bank.
  var rules = BankRules()
  /// What the cloud does with a store that went back to an older state.
  var setBackPolicy = SetBackPolicy.flag
  /// What the first device may do with the container; every other one reads and writes.
  var access = ContainerAccess.readWrite

  init(devices count: Int = 1, options: DeviceEngine.Options = .init()) throws {
    for number in 0..<count {
      var device = try LabDevice(writer: UInt64(number + 1), options: options)
      try DeviceCommit.opened(in: &device.storage, using: &random)
      devices.append(device)
    }
  }

  mutating func step(_ index: Int, _ event: EngineEvent) throws {
    devices[index].storage.connect()
    var engine = devices[index].engine
    let effects = try engine.step(event, now: now, in: &devices[index].storage, using: &random)
    devices[index].engine = engine
    for effect in effects {
      if case .notify(let notifications) = effect {
        devices[index].notifications.append(notifications)
      } else {
        devices[index].pending.append(effect)
      }
    }
  }

  /// Removes and returns the oldest request that the device waits for, if any.
  mutating func takeRequest(_ index: Int) -> EngineEffect? {
    devices[index].pending.removeAll { if case .wake = $0 { true } else { false } }
    return devices[index].pending.isEmpty ? nil : devices[index].pending.removeFirst()
  }

  /// Removes and returns all requests that the device waits for.
  mutating func takeRequests(_ index: Int = 0) -> [EngineEffect] {
    var requests: [EngineEffect] = []
    while let request = takeRequest(index) { requests.append(request) }
    return requests
  }

  /// The id by which the cloud knows a device.
  static func id(_ index: Int) -> DeviceID { DeviceID(high: 0, low: UInt64(index)) }

  func answer(
    to effect: EngineEffect, of index: Int? = nil, cloud: inout MemoryContainer, using random: inout SeededGenerator
  ) throws -> EngineEvent? {
    switch effect {
    case .exchange(let number, let request):
      .answered(
        request: number,
        try cloud.decide(
          reading: CloudAcceptance.reads(of: request, from: index.map(Self.id), hasQuota: quota != nil), using: &random
        ) { cloud, random in
          try CloudAcceptance.exchange(
            request, from: index.map(Self.id), now: now, quota: quota, rules: rules, setBackPolicy: setBackPolicy,
            access: index == 0 ? access : .readWrite, in: &cloud, using: &random)
        })
    case .upload(let number, let content):
      try {
        let heals = cloud.isSuspect(content.hash)
        if let quota, !heals,
          let shortage = try CloudAcceptance.shortage(for: Int64(content.bytes.count), quota, now: now, in: &cloud)
        {
          return .failed(request: number, TransportFailure(.rejected, "no room", quota: shortage))
        }
        if heals, content.base != nil {
          return .failed(request: number, TransportFailure(.rejected, "it has to come in full"))
        }
        try CloudAcceptance.put(content, in: &cloud, using: &random)
        return .uploaded(request: number, content.hash)
      }()
    case .download(let number, let hash): .downloaded(request: number, hash, cloud.content(hash))
    case .wake, .notify: nil
    }
  }

  /// Steps the device, and delivers its requests and the responses until it waits for nothing more.
  mutating func settle(_ index: Int, _ event: EngineEvent = .sync) throws {
    try step(index, devices[index].engine.status.phase == .stopped ? .started : event)
    for _ in 0..<500 {
      guard let effect = takeRequest(index) else { return }
      if case .exchange(_, let request) = effect {
        requests.append(request)
        devices[index].exchanges += 1
      }
      if let event = try answer(to: effect, of: index, cloud: &cloud, using: &random) { try step(index, event) }
    }
  }

  @discardableResult
  mutating func commit(_ index: Int, _ draft: CommitDraft) throws -> [VersionRecord] {
    now += 1
    return try DeviceCommit.apply(
      draft, now: now, writer: devices[index].writer, in: &devices[index].storage, using: &random)
  }

  @discardableResult
  mutating func save(
    _ index: Int, _ text: String, slot: String = "main", over parents: SaveParents,
    metadata: SaveMetadata = SaveMetadata(),
    tombstone: Bool = false
  ) throws -> VersionRecord {
    var contents: [ContentHash] = []
    if !tombstone { contents = [devices[index].storage.addContent(Data(text.utf8))] }
    let draft = SaveDraft(
      id: VersionID(using: &random), slot: slot, parents: parents, contents: contents,
      length: tombstone ? 0 : text.utf8.count,
      metadata: metadata, savedAtMilliseconds: now, tombstone: tombstone)
    return try commit(index, CommitDraft(saves: [draft]))[0]
  }

  mutating func operation(_ kind: WalletOperation.Kind, _ amount: Int64, _ currency: String = "gems") -> WalletOperation
  {
    WalletOperation(id: OperationID(using: &random), kind: kind, currency: currency, amount: amount, reason: "test")
  }

  @discardableResult
  mutating func perform(_ index: Int, _ kind: WalletOperation.Kind, _ amount: Int64) throws -> WalletOperation {
    let made = operation(kind, amount)
    try commit(index, CommitDraft(wallet: [made]))
    return made
  }

  func wallet(_ index: Int) -> Wallet {
    Wallet(devices[index].storage.wallet() ?? WalletState(chain: ChainID(high: 0, low: 0)))
  }

  func level(_ index: Int) -> CellValue? {
    devices[index].storage.cell(CellKey(collection: "progress", key: "level"))?.value
  }

  static func level(_ value: Int64) -> CommitDraft {
    CommitDraft(cells: [CellDraft(CellKey(collection: "progress", key: "level"), .max(.int(value)))])
  }
}

extension EngineEffect {
  /// The number of the request that the engine waits for; nil for other effects.
  var request: UInt64? {
    switch self {
    case .exchange(let number, _), .upload(let number, _), .download(let number, _): number
    case .wake, .notify: nil
    }
  }
}

extension DeviceCommit {
  /// Moves a store to another container, with a seed of its own.
  static func moved(in storage: inout some DeviceStorage) throws {
    var random = SeededGenerator(seed: 99)
    try moved(in: &storage, using: &random)
  }
}
