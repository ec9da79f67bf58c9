import FlowerGarden
import Foundation
import Keepsake
import KeepsakeTesting
import Testing

let gardenID = FlowerGarden.id

extension TestDevice {
  /// The garden on this device, opened.
  func garden() throws -> FlowerGarden { FlowerGarden(try open(gardenID)) }
}

extension FlowerGarden {
  func pot(_ name: String) throws -> Pot { try #require(try game.saves.load(.pot(name))) }
}

/// A phone and a tablet of one player that have both heard from their cloud, with a pot on each.
struct Pair {
  let world = TestWorld()
  let phone: TestDevice
  let tablet: TestDevice
  let here: FlowerGarden
  let there: FlowerGarden

  init(_ pot: Pot = Pot()) async throws {
    phone = try world.device("phone")
    tablet = try world.device("tablet")
    here = try phone.garden()
    there = try tablet.garden()
    try await here.game.saves.save(pot, to: .pot("sill"))
    try await world.settle()
  }

  func cut() { (phone.network, tablet.network) = (.cut, .cut) }

  func heal() async throws {
    (phone.network, tablet.network) = (.good, .good)
    try await world.settle()
  }
}

/// What a world owes that does not settle.
func debts(of world: TestWorld) async throws -> [UnsettledError.Debt] {
  do {
    try await world.settle()
    return []
  } catch let error as UnsettledError {
    return error.debts
  }
}

/// Runs what blocks or takes long on a thread of its own: the few that all tests share must not wait.
func onThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
  try await withCheckedThrowingContinuation { continuation in
    let thread = Thread { continuation.resume(with: Result { try body() }) }
    thread.stackSize = 4 << 20
    thread.start()
  }
}

struct TookTooLong: Error {}

/// Waits for what other threads do without telling anybody: far longer than it should ever take.
func eventually(_ condition: () throws -> Bool) async throws {
  for _ in 0..<3_000 {
    if try condition() { return }
    try await Task.sleep(for: .milliseconds(10))
  }
  throw TookTooLong()
}
