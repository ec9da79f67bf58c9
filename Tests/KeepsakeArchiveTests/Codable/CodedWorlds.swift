import Foundation
import KeepsakeArchive

// Types as other packages declare them: only Codable, and encoded in every way that Codable allows.

enum ThirdParty {
  enum Sky: String, Codable, Hashable { case clear, cloudy, storm }

  /// Encoded as a single value.
  struct Celsius: Codable, Hashable {
    var degrees: Double
    init(_ degrees: Double) { self.degrees = degrees }
    init(from decoder: any Decoder) throws { degrees = try decoder.singleValueContainer().decode(Double.self) }
    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      try container.encode(degrees)
    }
  }

  /// Encoded as a list.
  struct Wind: Codable, Hashable {
    var x: Float
    var y: Float
    var gusts: [Int]?

    init(x: Float, y: Float, gusts: [Int]? = nil) { (self.x, self.y, self.gusts) = (x, y, gusts) }
    init(from decoder: any Decoder) throws {
      var list = try decoder.unkeyedContainer()
      x = try list.decode(Float.self)
      y = try list.decode(Float.self)
      guard try !list.decodeNil() else { return }
      var inner = try list.nestedUnkeyedContainer()
      var gusts: [Int] = []
      while !inner.isAtEnd { gusts.append(try inner.decode(Int.self)) }
      self.gusts = gusts
    }
    func encode(to encoder: any Encoder) throws {
      var list = encoder.unkeyedContainer()
      try list.encode(x)
      try list.encode(y)
      guard let gusts else { return try list.encodeNil() }
      var inner = list.nestedUnkeyedContainer()
      for gust in gusts { try inner.encode(gust) }
    }
  }

  /// Encoded as a list with null elements.
  struct Sparse: Codable, Hashable {
    var values: [Int?]

    init(_ values: [Int?]) { self.values = values }
    init(from decoder: any Decoder) throws {
      var list = try decoder.unkeyedContainer()
      values = []
      while !list.isAtEnd {
        if try list.decodeNil() { values.append(nil) } else { values.append(try list.decode(Int.self)) }
      }
    }
    func encode(to encoder: any Encoder) throws {
      var list = encoder.unkeyedContainer()
      for value in values {
        if let value { try list.encode(value) } else { try list.encodeNil() }
      }
    }
  }

  /// Encoded with nested containers.
  struct Station: Codable, Hashable {
    var name: String
    var latitude: Double
    var longitude: Double

    private enum Keys: String, CodingKey { case name, position }
    private enum PositionKeys: String, CodingKey { case latitude, longitude }

    init(name: String, latitude: Double, longitude: Double) {
      (self.name, self.latitude, self.longitude) = (name, latitude, longitude)
    }
    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Keys.self)
      name = try container.decode(String.self, forKey: .name)
      let position = try container.nestedContainer(keyedBy: PositionKeys.self, forKey: .position)
      latitude = try position.decode(Double.self, forKey: .latitude)
      longitude = try position.decode(Double.self, forKey: .longitude)
    }
    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Keys.self)
      try container.encode(name, forKey: .name)
      // Requests the same container twice, as generated code of some packages does.
      var latitudes = container.nestedContainer(keyedBy: PositionKeys.self, forKey: .position)
      try latitudes.encode(latitude, forKey: .latitude)
      var longitudes = container.nestedContainer(keyedBy: PositionKeys.self, forKey: .position)
      try longitudes.encode(longitude, forKey: .longitude)
    }
  }

  indirect enum Forecast: Codable, Hashable {
    case unknown
    case expected(Sky, celsius: Celsius?)
    case either(Forecast, or: Forecast)
  }

  /// A superclass with synthesized coding.
  class Animal: Codable {
    var legs = 4
    init(legs: Int) { self.legs = legs }
  }
  final class Bird: Animal {
    var song: String
    private enum Keys: String, CodingKey { case song }

    init(song: String) {
      self.song = song
      super.init(legs: 2)
    }
    required init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Keys.self)
      song = try container.decode(String.self, forKey: .song)
      try super.init(from: container.superDecoder())
    }
    override func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Keys.self)
      try super.encode(to: container.superEncoder())
      try container.encode(song, forKey: .song)
    }
  }
  /// Encoded into the same container as its superclass.
  final class Fish: Animal {
    var fins: Int
    private enum Keys: String, CodingKey { case fins }

    init(fins: Int) {
      self.fins = fins
      super.init(legs: 0)
    }
    required init(from decoder: any Decoder) throws {
      fins = try decoder.container(keyedBy: Keys.self).decode(Int.self, forKey: .fins)
      try super.init(from: decoder)
    }
    override func encode(to encoder: any Encoder) throws {
      try super.encode(to: encoder)
      var container = encoder.container(keyedBy: Keys.self)
      try container.encode(fins, forKey: .fins)
    }
  }

  struct Silent: Codable, Hashable {
    init() {}
    init(from decoder: any Decoder) throws {}
    func encode(to encoder: any Encoder) throws {}
  }

  struct Weather: Codable, Hashable {
    var sky = Sky.storm
    var temperature = Celsius(-3.5)
    var wind: Wind? = Wind(x: 0.1, y: -2, gusts: [4, 500])
    var calm: Wind?
    var stations = [Station(name: "Säntis", latitude: 47.249, longitude: 9.343)]
    var forecast: [Forecast] = [
      .unknown, .expected(.clear, celsius: Celsius(20)), .either(.expected(.storm, celsius: nil), or: .unknown),
    ]
    var readings: [String: Double] = ["b": 1.5, "a": -0.25, "Ä": 0]
    var byHour: [Int: String] = [23: "late", 0: "early", -1: "before"]
    var bySky: [Sky: Int] = [.cloudy: 2, .clear: 1, .storm: 3]
    var byWind: [Wind: [Sky]] = [Wind(x: 1, y: 1): [.clear], Wind(x: 0, y: 1): []]
    var words: Set<String> = ["wet", "cold", "loud", "dark"]
    var measured = Date(timeIntervalSinceReferenceDate: 5_000_000.25)
    var image = Data([1, 2, 255])
    var id = UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))
    var source = URL(string: "https://example.com/weather?at=47,9")
    var price = Decimal(sign: .plus, exponent: -2, significand: 1999)
    var least = Int64.min
    var most = UInt64.max
    var small: UInt8 = 200
    var whole = 3.0
    var flag = true
    var nothing = Silent()
    var nested: [[Int?]] = [[1, nil], []]
    var matrix: [[String: [Double]]] = [["x": [1]], [:]]
  }
}

@Archivable struct Outside: Equatable {
  @Coded var weather: ThirdParty.Weather
  @Coded var days: [ThirdParty.Weather] = []
  @Coded var byPlace: [String: ThirdParty.Station] = [:]
  @Coded var tomorrow: ThirdParty.Forecast?
  @Coded var yesterday: ThirdParty.Forecast!
  @Coded let sky: ThirdParty.Sky
  @Coded var noon = ThirdParty.Celsius(12)
  var winds: [Coded<ThirdParty.Wind>] = []
  var payload = Payload.none
  var after = 5

  @Archivable enum Payload: Equatable {
    case none
    case forecast(Coded<ThirdParty.Forecast>, at: Int)
  }
}

@Archivable(subclasses: [OutsideBoss.self]) class OutsideCreature {
  @Coded var weather: ThirdParty.Weather?
  @Coded let home: ThirdParty.Station
  @Coded var path: [ThirdParty.Wind]
  var friend: OutsideCreature?

  init(home: ThirdParty.Station) {
    self.home = home
    path = []
  }
}
@Archivable final class OutsideBoss: OutsideCreature {
  @Coded var mood = ThirdParty.Sky.storm
}

@Archivable struct Holding<Inner: Equatable, Other>: Equatable where Other: Equatable {
  @Coded var inner: Inner
  @Coded var list: [Inner] = []
  var other: Other
}

@Archivable struct Joined {
  @Merge(.max) var level = 1
  @Coded var sky = ThirdParty.Sky.clear
  @Coded var silent = Uncomparable()
  @Merge(.union) @Coded var seen: Set<ThirdParty.Sky> = []

  struct Uncomparable: Codable { var x = 1 }
}
